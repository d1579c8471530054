import type { WalletRuleContent } from '../../tables/wallet-rule-content.ts';

/** Something that a rule may contain but that can hardly be meant. `path` is that of the member, in REST names. */
export interface RuleWarning {
  path: string;
  message: string;
}

type OnChain = { chain: string } | undefined;

/** What a rule refers to; undefined where the tenant does not have it. */
export interface Referred {
  /** The wallet of the rule; undefined if it is not known either. */
  wallet: OnChain;
  network: OnChain;
  currency: { network_id: string } | undefined;
  target: OnChain;
}

/** Returns the warnings about a rule: what its wallet, network and currency cannot reach, and a required approval without an approver. */
export function warningsOf(rule: WalletRuleContent, { wallet, network, currency, target }: Referred): RuleWarning[] {
  const { type, auto_transfer_rule: transfer, sign_and_approve_rule: approval } = rule;
  const isTransfer = type === 'auto_transfer';
  const isElsewhere = (one: OnChain) => one && network && one.chain !== network.chain;
  const warnings: (readonly [isGiven: unknown, path: string, message: string])[] = [
    [!network, 'network_id', 'there is no such network'],
    [isElsewhere(wallet), 'network_id', `the wallet is on ${wallet?.chain}, but the network is on ${network?.chain}`],
    [!currency, 'network_currency_id', 'there is no such currency'],
    [
      currency && network && currency.network_id !== rule.network_id.toLowerCase(),
      'network_currency_id',
      'the currency belongs to another network',
    ],
    [isTransfer && !target, 'auto_transfer_rule.target_wallet_id', 'there is no such wallet'],
    [
      isTransfer && isElsewhere(target),
      'auto_transfer_rule.target_wallet_id',
      `the target wallet is on ${target?.chain}, but the network is on ${network?.chain}`,
    ],
    [
      isTransfer && transfer?.type === 'auto_with_approve' && !approval,
      'auto_transfer_rule.type',
      'the transfer waits for an approval, but the rule requires none: nobody can approve it',
    ],
  ];
  return warnings.filter(([isGiven]) => isGiven).map(([, path, message]) => ({ path, message }));
}
