import type { Answer } from '../harness.ts';
import { operate } from './graphql-operation.ts';
import type { Things } from './marked-node.ts';
import type { Call } from './surface-row.ts';

/** The lists, each with a place for the arguments of its page. */
export const LISTS: Record<string, string> = {
  'Query.accounts': 'accounts(@) { edges { cursor } }',
  'Query.auditRecords': 'auditRecords(@) { edges { cursor } }',
  'Query.assets': 'assets(@) { edges { cursor } }',
  'Query.clients': 'clients(@) { edges { cursor } }',
  'Query.migrations': 'migrations(@) { edges { cursor } }',
  'Query.networks': 'networks(@) { edges { cursor } }',
  'Query.supervisors': 'supervisors(@) { edges { cursor } }',
  'Query.transactions': 'transactions(@) { edges { cursor } }',
  'Query.users': 'users(@) { edges { cursor } }',
  'Query.walletRules': 'walletRules(walletId: $ownWallet, @) { edges { cursor } }',
  'Query.walletRuleVersions': 'walletRuleVersions(ruleId: $ownRule, @) { edges { cursor } }',
  'Query.wallets': 'wallets(@) { edges { cursor } }',
  'Account.wallets': 'account(id: $ownAccount) { list: wallets(@) { edges { cursor } } }',
  'Migration.rows': 'migration(id: $ownMigration) { list: rows(@) { edges { cursor } } }',
  'Transaction.events': 'transaction(id: $ownTransaction) { list: events(@) { edges { cursor } } }',
  'Wallet.networks': 'wallet(id: $ownWallet) { list: networks(@) { edges { cursor } } }',
  'Wallet.rules': 'wallet(id: $ownWallet) { list: rules(@) { edges { cursor } } }',
  'WalletRule.versions': 'walletRule(id: $ownRule) { list: versions(@) { edges { cursor } } }',
};

/** Asks for a list of a node, from a cursor on. */
export function askList(call: Call, list: string, page: string, own: Things): Promise<Answer> {
  return operate(call, `query { ${(LISTS[list] ?? '').replace('@', page)} }`, {
    ...{ ownWallet: own.wallet, ownAccount: own.account, ownMigration: own.migration },
    ...{ ownTransaction: own.transaction, ownRule: own.rule },
  });
}
