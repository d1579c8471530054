import type { Db } from '../db.ts';
import { notFoundRefusal } from '../errors/refusal.ts';
import { isUuid } from '../lib/input.ts';
import { sqlState } from '../lib/sql-state.ts';

const FOREIGN_KEY_VIOLATION = '23503';

interface NetworkAssignmentsParts {
  db: Db;
  nowMs(): number;
}

/** What came of an assignment; one that was there before is as good as a new one. */
export type Assignment = 'assigned' | 'other_chain';

/** Assigns networks to wallets (specification section 4.4). */
export class NetworkAssignments {
  readonly #parts: NetworkAssignmentsParts;

  constructor(parts: NetworkAssignmentsParts) {
    this.#parts = parts;
  }

  /**
   * Lets a wallet operate on a network of its own chain. Of several at once, or one after another, one row comes.
   * @throws RefusalError `not_found` for a wallet that is not the node's, and for a network that nobody knows.
   */
  async assign(nodeId: string, walletId: string, networkId: string): Promise<Assignment> {
    if (!isUuid(walletId) || !isUuid(networkId)) throw notFoundRefusal();
    const wallet_id = walletId.toLowerCase();
    const network_id = networkId.toLowerCase();
    const door = this.#parts.db.forNode(nodeId);
    const [chains] = await door.run((k) =>
      k
        .selectFrom('wallets')
        .innerJoin('networks', (join) => join.on('networks.id', '=', network_id))
        .select(['wallets.chain_id as ofWallet', 'networks.chain_id as ofNetwork'])
        .where('wallets.id', '=', wallet_id),
    );
    if (!chains) throw notFoundRefusal();
    if (chains.ofWallet !== chains.ofNetwork) return 'other_chain';
    const created_at = new Date(this.#parts.nowMs()).toISOString();
    try {
      await door.run((k) =>
        k
          .insertInto('wallet_networks')
          .values({ wallet_id, network_id, created_at })
          .onConflict((conflict) => conflict.columns(['wallet_id', 'network_id']).doNothing()),
      );
    } catch (error) {
      // One of the two has gone in between.
      throw sqlState(error) === FOREIGN_KEY_VIOLATION ? notFoundRefusal() : error;
    }
    return 'assigned';
  }
}
