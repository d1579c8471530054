import type { Kysely, Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { isOneOf } from '../lib/conditions.ts';
import { type Page, type PageRead, type PageRequest, pageRead, pagesBy } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';
import type { FormedQuery } from '../lib/prepared-query.ts';
import type { Scoped } from '../lib/tenant-db.ts';

/** A rule as the table has it; times are PostgreSQL's text in UTC, to the microsecond. */
export type WalletRuleRow = Selectable<Tables['wallet_rules']>;

const columns = [
  'id',
  'node_id',
  'wallet_id',
  'name',
  'type',
  'network_id',
  'network_currency_id',
  'priority',
  'auto_transfer_rule',
  'sign_and_approve_rule',
  'permissionless_transfer_limit_rule',
  'status',
  'version',
  'created_at',
  'updated_at',
] as const;

/** Reads the rules of wallets by keyset, oldest first. */
export class WalletRulePages {
  readonly #ofWallets: FormedQuery<WalletRuleRow, { walletIds: readonly string[]; page: PageRead }>;
  readonly #countOfWallets: FormedQuery<{ wallet_id: string; total: string }, { walletIds: readonly string[] }>;
  readonly #find: FormedQuery<WalletRuleRow, { id: string }>;

  constructor(db: Db) {
    this.#ofWallets = db.prepareForms(rulesOfWallets);
    this.#countOfWallets = db.prepareForms((k, { walletIds }) =>
      k
        .selectFrom('wallet_rules')
        .select(['wallet_id', (eb) => eb.fn.countAll<string>().as('total')])
        .where((eb) => isOneOf(eb, 'wallet_id', walletIds))
        .groupBy('wallet_id'),
    );
    this.#find = db.prepareForms((k, { id }) => k.selectFrom('wallet_rules').select(columns).where('id', '=', id));
  }

  /** The same page of each wallet, in one statement; a wallet without rules in it is not in the map. */
  async ofWallets(
    nodeId: string,
    walletIds: readonly string[],
    request: PageRequest,
  ): Promise<Map<string, Page<WalletRuleRow>>> {
    const rows = await this.#ofWallets.run(nodeId, { walletIds, page: pageRead(request) });
    return pagesBy(rows, (row) => row.wallet_id, request);
  }

  /** How many rules each wallet has; a wallet without any is not in the map. */
  async countOfWallets(nodeId: string, walletIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#countOfWallets.run(nodeId, { walletIds });
    return new Map(rows.map(({ wallet_id: walletId, total }) => [walletId, Number(total)]));
  }

  /** The rule with this id (a UUID); undefined where the node has none. */
  async find(nodeId: string, id: string): Promise<WalletRuleRow | undefined> {
    const [row] = await this.#find.run(nodeId, { id });
    return row;
  }
}

function rulesOfWallets(
  k: Kysely<Scoped<Tables>>,
  { walletIds, page }: { walletIds: readonly string[]; page: PageRead },
) {
  const direction = page.backward ? 'desc' : 'asc';
  return k
    .selectFrom('wallets')
    .innerJoinLateral(
      (eb) => {
        const rules = eb
          .selectFrom('wallet_rules')
          .select(columns.map((column) => `wallet_rules.${column}` as const))
          .whereRef('wallet_rules.wallet_id', '=', 'wallets.id');
        return keysetPage(rules, page, ['wallet_rules.created_at', 'wallet_rules.id']).as('rule');
      },
      (join) => join.onTrue(),
    )
    .select(columns.map((column) => `rule.${column}` as const))
    .where((eb) => isOneOf(eb, 'wallets.id', walletIds))
    .orderBy('rule.created_at', direction)
    .orderBy('rule.id', direction);
}
