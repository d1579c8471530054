import type { Db } from '../db.ts';
import { type Page, type PageRequest, pageOf } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';

/** A network with the name of its chain; `at` is when it came to be listed, PostgreSQL's text in UTC to the microsecond. */
export interface NetworkRow {
  id: string;
  name: string;
  chain: string;
  at: string;
}

/** Reads networks by keyset, oldest first. They are the same for every node; which a wallet has is the node's. */
export class NetworkPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** A page of all networks, in the order in which they became known. */
  async page(nodeId: string, request: PageRequest): Promise<Page<NetworkRow>> {
    const rows = await this.#db.forNode(nodeId).run((k) => {
      const listed = k
        .selectFrom('networks')
        .innerJoin('chains', 'chains.id', 'networks.chain_id')
        .select(['networks.id', 'networks.name', 'chains.name as chain', 'networks.created_at as at']);
      return keysetPage(listed, request, ['networks.created_at', 'networks.id']);
    });
    return pageOf(rows, request);
  }

  /** How many networks there are. */
  async count(nodeId: string): Promise<number> {
    const [counted] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('networks').select((eb) => eb.fn.countAll<string>().as('total')));
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
    const direction = request.backward ? 'desc' : 'asc';
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('wallets')
        .innerJoinLateral(
          (eb) => {
            const held = eb
              .selectFrom('wallet_networks as held')
              .select(['held.wallet_id', 'held.network_id', 'held.created_at'])
              .whereRef('held.wallet_id', '=', 'wallets.id');
            return keysetPage(held, request, ['held.created_at', 'held.network_id']).as('assigned');
          },
          (join) => join.onTrue(),
        )
        .innerJoin('networks', 'networks.id', 'assigned.network_id')
        .innerJoin('chains', 'chains.id', 'networks.chain_id')
        .select([
          'networks.id',
          'networks.name',
          'chains.name as chain',
          'assigned.created_at as at',
          'assigned.wallet_id',
        ])
        .where('wallets.id', 'in', walletIds)
        .orderBy('assigned.created_at', direction)
        .orderBy('assigned.network_id', direction),
    );
    const byWallet = Map.groupBy(rows, (row) => row.wallet_id);
    return new Map([...byWallet].map(([walletId, read]) => [walletId, pageOf(read, request)]));
  }

  /** How many networks each wallet has; a wallet without any is not in the map. */
  async countOfWallets(nodeId: string, walletIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('wallet_networks')
        .select(['wallet_id', (eb) => eb.fn.countAll<string>().as('total')])
        .where('wallet_id', 'in', walletIds)
        .groupBy('wallet_id'),
    );
    return new Map(rows.map(({ wallet_id: walletId, total }) => [walletId, Number(total)]));
  }
}
