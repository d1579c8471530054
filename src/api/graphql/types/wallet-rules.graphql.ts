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
    'The condition, amount and target of an automatic transfer.',
    {
      type: ['String', '`auto`, or `auto_with_approve`, which waits for approval.'],
      amount: ['Decimal', 'The amount to transfer.'],
      target_wallet_id: ['ID', 'The id of the target wallet, as sent.'],
    },
  );
  builder.objectFields(autoTransfer, (t) => ({
    ruleLogic: t.field({
      type: 'JSON',
      description: 'The condition tree as in REST, with operators in the short form.',
      resolve: (rule) => ruleLogicView(rule.rule_logic),
    }),
  }));
  const signAndApprove = implement(
    builder.objectRef<SignAndApproveRule>('SignAndApproveRule'),
    'The approvals that are required.',
    {
      mandatory_user_id: ['ID?', 'The id of a user who must approve, as sent.'],
      min_priority: ['Int?', 'The lowest priority of an approver, 1 to 100.'],
      max_priority: ['Int?', 'The highest priority of an approver, 1 to 100.'],
      min_user_count: ['Int?', 'The number of approvals required, at least 1.'],
    },
  );
  const limit = implement(
    builder.objectRef<PermissionlessTransferLimitRule>('PermissionlessTransferLimitRule'),
    'The limit on transfers within a time window.',
    {
      max_amount: ['Decimal', 'The maximum in the window: a whole number.'],
      time_period: ['String', '`hour`, `day`, `week`, `month` or `year`.'],
      time_period_value: ['Int', 'The number of periods in the window.'],
    },
  );
  implement(refs.walletRule, 'A rule of a wallet.', {
    id: ['ID', 'A UUID, the same as in REST.'],
    wallet_id: ['ID', 'The wallet that it belongs to.'],
    name: ['String', 'The display name.'],
    type: ['String', '`auto_transfer` or `permissionless_transfer_limit`.'],
    network_id: ['ID', 'The network that it applies to, as sent.'],
    network_currency_id: ['ID', 'The currency that it applies to, as sent.'],
    priority: ['Int?', 'The priority, 1 to 100; stored as sent.'],
    status: [refs.walletRuleStatus, 'Whether the rule can fire.'],
    version: ['Int', 'The version, which every change raises; the entity tag in REST.'],
    auto_transfer_rule: [autoTransfer, 'The automatic transfer; null if not sent.', 'nullable'],
    sign_and_approve_rule: [signAndApprove, 'The approvals that are required; null if not sent.', 'nullable'],
    permissionless_transfer_limit_rule: [
      limit,
      'The limit on transfers within a time window; null if not sent.',
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
        "A wallet's rules, active or not, oldest first. NOT_FOUND if the wallet is unknown or belongs to another tenant.",
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
      ...needs('wallet-rules:read', 'One rule; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id({ required: true, description: "The rule's UUID." }) },
      resolve: rowResolver(({ walletRulePages }, nodeId, id) => walletRulePages.find(nodeId, id)),
    }),
  }));
}
