import type { ExpressionBuilder, Kysely } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { isOneOf } from '../lib/conditions.ts';
import { type Page, type PageRead, type PageRequest, pageOf, pageRead, pagesBy } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';
import type { FormedQuery } from '../lib/prepared-query.ts';
import type { Scoped } from '../lib/tenant-db.ts';

/** A wallet as the tables have it, with the name of its chain; times are PostgreSQL's text in UTC, to the microsecond. */
export interface WalletRow {
  id: string;
  account_id: string;
  chain: string;
  created_at: string;
}

/** Which wallets a list has; all that is given must hold. Both are UUIDs in lower case. */
export interface WalletFilter {
  accountId?: string | undefined;
  /** Those that the network is assigned to. */
  networkId?: string | undefined;
}

/** Reads wallets by keyset, oldest first. */
export class WalletPages {
  readonly #page: FormedQuery<WalletRow, { filter: WalletFilter; page: PageRead }>;
  readonly #count: FormedQuery<{ total: string }, WalletFilter>;
  readonly #ofAccounts: FormedQuery<WalletRow, { accountIds: readonly string[]; page: PageRead }>;
  readonly #countOfAccounts: FormedQuery<{ account_id: string; total: string }, { accountIds: readonly string[] }>;
  readonly #find: FormedQuery<WalletRow, { id: string }>;

  constructor(db: Db) {
    this.#page = db.prepareForms((k, { filter, page }) => {
      const listed = wallets(k).where((eb) => eb.and(conditions(eb, filter)));
      return keysetPage(listed, page, ['wallets.created_at', 'wallets.id']);
    });
    this.#count = db.prepareForms((k, filter) =>
      k
        .selectFrom('wallets')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .where((eb) => eb.and(conditions(eb, filter))),
    );
    this.#ofAccounts = db.prepareForms(walletsOfAccounts);
    this.#countOfAccounts = db.prepareForms((k, { accountIds }) =>
      k
        .selectFrom('wallets')
        .select(['account_id', (eb) => eb.fn.countAll<string>().as('total')])
        .where((eb) => isOneOf(eb, 'account_id', accountIds))
        .groupBy('account_id'),
    );
    this.#find = db.prepareForms((k, { id }) => wallets(k).where('wallets.id', '=', id));
  }

  /** A page of a node's wallets. */
  async page(nodeId: string, filter: WalletFilter, request: PageRequest): Promise<Page<WalletRow>> {
    return pageOf(await this.#page.run(nodeId, { filter, page: pageRead(request) }), request);
  }

  /** How many wallets the filter lets through. */
  async count(nodeId: string, filter: WalletFilter): Promise<number> {
    const [counted] = await this.#count.run(nodeId, filter);
    return Number(counted?.total ?? 0);
  }

  /** The same page of each account, in one statement; an account without wallets in it is not in the map. */
  async ofAccounts(
    nodeId: string,
    accountIds: readonly string[],
    request: PageRequest,
  ): Promise<Map<string, Page<WalletRow>>> {
    const rows = await this.#ofAccounts.run(nodeId, { accountIds, page: pageRead(request) });
    return pagesBy(rows, (row) => row.account_id, request);
  }

  /** The wallet with this id (a UUID); undefined where the node has none. */
  async find(nodeId: string, id: string): Promise<WalletRow | undefined> {
    const [row] = await this.#find.run(nodeId, { id });
    return row;
  }

  /** How many wallets each account has; an account without any is not in the map. */
  async countOfAccounts(nodeId: string, accountIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#countOfAccounts.run(nodeId, { accountIds });
    return new Map(rows.map(({ account_id: accountId, total }) => [accountId, Number(total)]));
  }
}

function wallets(k: Kysely<Scoped<Tables>>) {
  return k
    .selectFrom('wallets')
    .innerJoin('chains', 'chains.id', 'wallets.chain_id')
    .select(['wallets.id', 'wallets.account_id', 'wallets.created_at', 'chains.name as chain']);
}

function walletsOfAccounts(
  k: Kysely<Scoped<Tables>>,
  { accountIds, page }: { accountIds: readonly string[]; page: PageRead },
) {
  const direction = page.backward ? 'desc' : 'asc';
  return k
    .selectFrom('accounts')
    .innerJoinLateral(
      (eb) => {
        const own = eb
          .selectFrom('wallets')
          .select(['wallets.id', 'wallets.account_id', 'wallets.chain_id', 'wallets.created_at'])
          .whereRef('wallets.account_id', '=', 'accounts.id');
        return keysetPage(own, page, ['wallets.created_at', 'wallets.id']).as('wallet');
      },
      (join) => join.onTrue(),
    )
    .innerJoin('chains', 'chains.id', 'wallet.chain_id')
    .select(['wallet.id', 'wallet.account_id', 'wallet.created_at', 'chains.name as chain'])
    .where((eb) => isOneOf(eb, 'accounts.id', accountIds))
    .orderBy('wallet.created_at', direction)
    .orderBy('wallet.id', direction);
}

function conditions(eb: ExpressionBuilder<Scoped<Tables>, 'wallets'>, { accountId, networkId }: WalletFilter) {
  return [
    ...(accountId === undefined ? [] : [eb('wallets.account_id', '=', accountId)]),
    ...(networkId === undefined
      ? []
      : [
          eb(
            'wallets.id',
            'in',
            eb.selectFrom('wallet_networks').select('wallet_networks.wallet_id').where('network_id', '=', networkId),
          ),
        ]),
  ];
}
