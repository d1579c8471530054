import type {
  AutoTransferRule,
  PermissionlessTransferLimitRule,
  SignAndApproveRule,
} from '../../../tables/wallet-rule-content.ts';
import { rulesOfWallet } from '../../shared/lists.ts';
import { type Builder, needs } from '../kit/builder.ts';
import { connectionResolver, ownedConnectionResolver, rowResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';
import { addPreview } from './preview.graphql.ts';
import { addWalletRuleMutations, walletRuleInputType, walletRuleStatusEnum } from './wallet-rule-mutations.graphql.ts';
import { addWalletRuleVersions, ruleLogicView } from './wallet-rule-versions.graphql.ts';

/** Adds the types of wallet rules, their queries, the preview and the mutations. */
export function addWalletRules(builder: Builder, refs: TypeRefs): void {
  const status = walletRuleStatusEnum(builder);
  const input = walletRuleInputType(builder);
  const autoTransfer = builder.objectRef<AutoTransferRule>('AutoTransferRule').implement({
    description: 'When and what an automatic transfer moves.',
    fields: (t) => ({
      type: t.exposeString('type', { description: '`auto`, or `auto_with_approve`: it waits for an approval.' }),
      ruleLogic: t.field({
        type: 'JSON',
        description: 'The condition tree in the shape of REST; its operators are in the short form.',
        resolve: (rule) => ruleLogicView(rule.rule_logic),
      }),
      amount: t.expose('amount', { type: 'Decimal', description: 'How much is moved.' }),
      targetWalletId: t.exposeID('target_wallet_id', { description: 'The id of the target wallet, as sent.' }),
    }),
  });
  const signAndApprove = builder.objectRef<SignAndApproveRule>('SignAndApproveRule').implement({
    description: 'Who must approve.',
    fields: (t) => ({
      mandatoryUserId: t.exposeID('mandatory_user_id', {
        nullable: true,
        description: 'A user who must be among them, as sent.',
      }),
      minPriority: t.exposeInt('min_priority', {
        nullable: true,
        description: 'The lowest priority of an approver, 1 to 100.',
      }),
      maxPriority: t.exposeInt('max_priority', {
        nullable: true,
        description: 'The highest priority of an approver, 1 to 100.',
      }),
      minUserCount: t.exposeInt('min_user_count', {
        nullable: true,
        description: 'How many must approve, at least 1.',
      }),
    }),
  });
  const limit = builder.objectRef<PermissionlessTransferLimitRule>('PermissionlessTransferLimitRule').implement({
    description: 'How much may be transferred in a window of time.',
    fields: (t) => ({
      maxAmount: t.expose('max_amount', { type: 'Decimal', description: 'The maximum in the window: a whole number.' }),
      timePeriod: t.exposeString('time_period', { description: '`hour`, `day`, `week`, `month` or `year`.' }),
      timePeriodValue: t.exposeInt('time_period_value', { description: 'How many such periods the window has.' }),
    }),
  });
  refs.walletRule.implement({
    description: 'A rule of a wallet.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID, the same as in REST.' }),
      walletId: t.exposeID('wallet_id', { description: 'The wallet that it belongs to.' }),
      name: t.exposeString('name', { description: 'The display name.' }),
      type: t.exposeString('type', { description: '`auto_transfer` or `permissionless_transfer_limit`.' }),
      networkId: t.exposeID('network_id', { description: 'The network that it is for, as sent.' }),
      networkCurrencyId: t.exposeID('network_currency_id', { description: 'The currency that it is for, as sent.' }),
      priority: t.exposeInt('priority', { nullable: true, description: '1 to 100; kept as sent.' }),
      status: t.expose('status', { type: status, description: 'Whether it can fire.' }),
      version: t.exposeInt('version', { description: 'Raised by every change; the entity tag in REST.' }),
      autoTransferRule: t.expose('auto_transfer_rule', {
        type: autoTransfer,
        nullable: true,
        description: 'When and what to transfer; null where it was not sent.',
      }),
      signAndApproveRule: t.expose('sign_and_approve_rule', {
        type: signAndApprove,
        nullable: true,
        description: 'Who must approve; null where it was not sent.',
      }),
      permissionlessTransferLimitRule: t.expose('permissionless_transfer_limit_rule', {
        type: limit,
        nullable: true,
        description: 'How much may be transferred in a window of time; null where it was not sent.',
      }),
      createdAt: t.expose('created_at', { type: 'DateTime', description: 'When it was created.' }),
      updatedAt: t.expose('updated_at', { type: 'DateTime', description: 'When it was last changed.' }),
    }),
  });
  addPreview(builder, input);
  addWalletRuleMutations(builder, refs, { input, status });
  addWalletRuleVersions(builder, refs, status);
  const connection = builder.connectionObject(
    { type: refs.walletRule, name: 'WalletRuleConnection', description: 'A page of wallet rules.' },
    { name: 'WalletRuleEdge', description: 'A rule and its cursor.' },
  );
  builder.objectField(refs.wallet, 'rules', (t) =>
    t.field({
      type: connection,
      ...needs('wallet-rules:read', "The wallet's rules, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('rulesOfWallet', ({ walletRulePages }) => walletRulePages.ofWallets),
    }),
  );
  builder.queryFields((t) => ({
    walletRules: t.field({
      type: connection,
      ...needs(
        'wallet-rules:read',
        "A wallet's rules, active or not, oldest first. NOT_FOUND for a wallet that is unknown or of another node.",
      ),
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver('walletRules', rulesOfWallet, ({ walletId }) => walletId.toLowerCase()),
    }),
    walletRule: t.field({
      type: refs.walletRule,
      nullable: true,
      ...needs('wallet-rules:read', 'One rule; null for an id that is unknown or of another node.'),
      args: { id: t.arg.id({ required: true, description: "The rule's UUID." }) },
      resolve: rowResolver(({ walletRulePages }, nodeId, id) => walletRulePages.find(nodeId, id)),
    }),
  }));
}
