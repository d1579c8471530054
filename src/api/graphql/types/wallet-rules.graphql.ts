import type {
  AutoTransferRule,
  PermissionlessTransferLimitRule,
  SignAndApproveRule,
} from '../../../tables/wallet-rule-content.ts';
import { rulesOfWallet } from '../../shared/lists.ts';
import { type Builder, connectionOf, implement, needs } from '../kit/builder.ts';
import { connectionResolver, ownedConnectionResolver, rowResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';
import { addPreview } from './preview.graphql.ts';
import { addWalletRuleMutations, walletRuleInputType } from './wallet-rule-mutations.graphql.ts';
import { addWalletRuleVersions, ruleLogicView } from './wallet-rule-versions.graphql.ts';

/** Adds the types of wallet rules, their queries, the preview and the mutations. */
export function addWalletRules(builder: Builder, refs: TypeRefs): void {
  const input = walletRuleInputType(builder);
  const autoTransfer = implement(
    builder.objectRef<AutoTransferRule>('AutoTransferRule'),
    'When and what an automatic transfer moves.',
    {
      type: ['String', '`auto`, or `auto_with_approve`: it waits for an approval.'],
      amount: ['Decimal', 'How much is moved.'],
      target_wallet_id: ['ID', 'The id of the target wallet, as sent.'],
    },
  );
  builder.objectFields(autoTransfer, (t) => ({
    ruleLogic: t.field({
      type: 'JSON',
      description: 'The condition tree in the shape of REST; its operators are in the short form.',
      resolve: (rule) => ruleLogicView(rule.rule_logic),
    }),
  }));
  const signAndApprove = implement(builder.objectRef<SignAndApproveRule>('SignAndApproveRule'), 'Who must approve.', {
    mandatory_user_id: ['ID?', 'A user who must be among them, as sent.'],
    min_priority: ['Int?', 'The lowest priority of an approver, 1 to 100.'],
    max_priority: ['Int?', 'The highest priority of an approver, 1 to 100.'],
    min_user_count: ['Int?', 'How many must approve, at least 1.'],
  });
  const limit = implement(
    builder.objectRef<PermissionlessTransferLimitRule>('PermissionlessTransferLimitRule'),
    'How much may be transferred in a window of time.',
    {
      max_amount: ['Decimal', 'The maximum in the window: a whole number.'],
      time_period: ['String', '`hour`, `day`, `week`, `month` or `year`.'],
      time_period_value: ['Int', 'How many such periods the window has.'],
    },
  );
  implement(refs.walletRule, 'A rule of a wallet.', {
    id: ['ID', 'A UUID, the same as in REST.'],
    wallet_id: ['ID', 'The wallet that it belongs to.'],
    name: ['String', 'The display name.'],
    type: ['String', '`auto_transfer` or `permissionless_transfer_limit`.'],
    network_id: ['ID', 'The network that it is for, as sent.'],
    network_currency_id: ['ID', 'The currency that it is for, as sent.'],
    priority: ['Int?', '1 to 100; kept as sent.'],
    status: [refs.walletRuleStatus, 'Whether it can fire.'],
    version: ['Int', 'Raised by every change; the entity tag in REST.'],
    auto_transfer_rule: [autoTransfer, 'When and what to transfer; null where it was not sent.', 'nullable'],
    sign_and_approve_rule: [signAndApprove, 'Who must approve; null where it was not sent.', 'nullable'],
    permissionless_transfer_limit_rule: [
      limit,
      'How much may be transferred in a window of time; null where it was not sent.',
      'nullable',
    ],
    created_at: ['DateTime', 'When it was created.'],
    updated_at: ['DateTime', 'When it was last changed.'],
  });
  addPreview(builder, input);
  addWalletRuleMutations(builder, refs, input);
  addWalletRuleVersions(builder, refs);
  const connection = connectionOf(builder, refs.walletRule, 'A page of wallet rules.', 'A rule and its cursor.');
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
