import type { Kysely } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { isOneOf } from '../lib/conditions.ts';
import { type Page, type PageRead, type PageRequest, pageOf, pageRead, pagesBy } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';
import type { FormedQuery } from '../lib/prepared-query.ts';
import type { Scoped } from '../lib/tenant-db.ts';

/** A network with the name of its chain; `at` is when it came to be listed, PostgreSQL's text in UTC to the microsecond. */
export interface NetworkRow {
  id: string;
  name: string;
  chain: string;
  at: string;
}

/** Reads networks by keyset, oldest first. They are the same for every node; which a wallet has is the node's. */
export class NetworkPages {
  readonly #page: FormedQuery<NetworkRow, PageRead>;
  readonly #count: FormedQuery<{ total: string }, object>;
  readonly #ofWallets: FormedQuery<
    NetworkRow & { wallet_id: string },
    { walletIds: readonly string[]; page: PageRead }
  >;
  readonly #countOfWallets: FormedQuery<{ wallet_id: string; total: string }, { walletIds: readonly string[] }>;

  constructor(db: Db) {
    this.#page = db.prepareForms((k, page) => {
      const listed = k
        .selectFrom('networks')
        .innerJoin('chains', 'chains.id', 'networks.chain_id')
        .select(['networks.id', 'networks.name', 'chains.name as chain', 'networks.created_at as at']);
      return keysetPage(listed, page, ['networks.created_at', 'networks.id']);
    });
    this.#count = db.prepareForms((k) => k.selectFrom('networks').select((eb) => eb.fn.countAll<string>().as('total')));
    this.#ofWallets = db.prepareForms(networksOfWallets);
    this.#countOfWallets = db.prepareForms((k, { walletIds }) =>
      k
        .selectFrom('wallet_networks')
        .select(['wallet_id', (eb) => eb.fn.countAll<string>().as('total')])
        .where((eb) => isOneOf(eb, 'wallet_id', walletIds))
        .groupBy('wallet_id'),
    );
  }

  /** A page of all networks, in the order in which they became known. */
  async page(nodeId: string, request: PageRequest): Promise<Page<NetworkRow>> {
    return pageOf(await this.#page.run(nodeId, pageRead(request)), request);
  }

  /** How many networks there are. */
  async count(nodeId: string): Promise<number> {
    const [counted] = await this.#count.run(nodeId, {});
    return Number(counted?.total ?? 0);
  }

  /**
   * The same page of each wallet's networks in the order of their assignment, in one statement; a wallet without
   * networks in it is not in the map.
   */
  async ofWallets(
    nodeId: string,
    walletIds: readonly string[],
    request: PageRequest,
  ): Promise<Map<string, Page<NetworkRow>>> {
    const rows = await this.#ofWallets.run(nodeId, { walletIds, page: pageRead(request) });
    return pagesBy(rows, (row) => row.wallet_id, request);
  }

  /** How many networks each wallet has; a wallet without any is not in the map. */
  async countOfWallets(nodeId: string, walletIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#countOfWallets.run(nodeId, { walletIds });
    return new Map(rows.map(({ wallet_id: walletId, total }) => [walletId, Number(total)]));
  }
}

function networksOfWallets(
  k: Kysely<Scoped<Tables>>,
  { walletIds, page }: { walletIds: readonly string[]; page: PageRead },
) {
  const direction = page.backward ? 'desc' : 'asc';
  return k
    .selectFrom('wallets')
    .innerJoinLateral(
      (eb) => {
        const held = eb
          .selectFrom('wallet_networks as held')
          .select(['held.wallet_id', 'held.network_id', 'held.created_at'])
          .whereRef('held.wallet_id', '=', 'wallets.id');
        return keysetPage(held, page, ['held.created_at', 'held.network_id']).as('assigned');
      },
      (join) => join.onTrue(),
    )
    .innerJoin('networks', 'networks.id', 'assigned.network_id')
    .innerJoin('chains', 'chains.id', 'networks.chain_id')
    .select(['networks.id', 'networks.name', 'chains.name as chain', 'assigned.created_at as at', 'assigned.wallet_id'])
    .where((eb) => isOneOf(eb, 'wallets.id', walletIds))
    .orderBy('assigned.created_at', direction)
    .orderBy('assigned.network_id', direction);
}
