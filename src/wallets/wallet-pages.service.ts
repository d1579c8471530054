import type { ExpressionBuilder } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { type Page, type PageRequest, pageOf } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';
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
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** A page of a node's wallets. */
  async page(nodeId: string, filter: WalletFilter, request: PageRequest): Promise<Page<WalletRow>> {
    const rows = await this.#db.forNode(nodeId).run((k) => {
      const wallets = k
        .selectFrom('wallets')
        .innerJoin('chains', 'chains.id', 'wallets.chain_id')
        .select(['wallets.id', 'wallets.account_id', 'wallets.created_at', 'chains.name as chain'])
        .where((eb) => eb.and(conditions(eb, filter)));
      return keysetPage(wallets, request, ['wallets.created_at', 'wallets.id']);
    });
    return pageOf(rows, request);
  }

  /** How many wallets the filter lets through. */
  async count(nodeId: string, filter: WalletFilter): Promise<number> {
    const [counted] = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('wallets')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .where((eb) => eb.and(conditions(eb, filter))),
    );
    return Number(counted?.total ?? 0);
  }

  /** The same page of each account, in one statement; an account without wallets in it is not in the map. */
  async ofAccounts(
    nodeId: string,
    accountIds: readonly string[],
    request: PageRequest,
  ): Promise<Map<string, Page<WalletRow>>> {
    const direction = request.backward ? 'desc' : 'asc';
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('accounts')
        .innerJoinLateral(
          (eb) => {
            const wallets = eb
              .selectFrom('wallets')
              .select(['wallets.id', 'wallets.account_id', 'wallets.chain_id', 'wallets.created_at'])
              .whereRef('wallets.account_id', '=', 'accounts.id');
            return keysetPage(wallets, request, ['wallets.created_at', 'wallets.id']).as('wallet');
          },
          (join) => join.onTrue(),
        )
        .innerJoin('chains', 'chains.id', 'wallet.chain_id')
        .select(['wallet.id', 'wallet.account_id', 'wallet.created_at', 'chains.name as chain'])
        .where('accounts.id', 'in', accountIds)
        .orderBy('wallet.created_at', direction)
        .orderBy('wallet.id', direction),
    );
    const byAccount = Map.groupBy(rows, (row) => row.account_id);
    return new Map([...byAccount].map(([accountId, read]) => [accountId, pageOf(read, request)]));
  }

  /** The wallet with this id (a UUID); undefined where the node has none. */
  async find(nodeId: string, id: string): Promise<WalletRow | undefined> {
    const [row] = await this.#db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('wallets')
          .innerJoin('chains', 'chains.id', 'wallets.chain_id')
          .select(['wallets.id', 'wallets.account_id', 'wallets.created_at', 'chains.name as chain'])
          .where('wallets.id', '=', id),
      );
    return row;
  }

  /** How many wallets each account has; an account without any is not in the map. */
  async countOfAccounts(nodeId: string, accountIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('wallets')
        .select(['account_id', (eb) => eb.fn.countAll<string>().as('total')])
        .where('account_id', 'in', accountIds)
        .groupBy('account_id'),
    );
    return new Map(rows.map(({ account_id: accountId, total }) => [accountId, Number(total)]));
  }
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
