import type { Selectable } from 'kysely';
import { type Author, writeAs } from '../../access/identity/authors.ts';
import type { DbAndClock } from '../../platform/database/database.ts';
import { type KeysetList, keysetList, type NestedList, nestedList } from '../../platform/database/keyset-list.ts';
import { idOrNotFound, invalidInput, orNotFound, withParent } from '../../platform/errors.ts';
import type { Tables } from '../../tables/tables.ts';
import type { WalletRow } from '../wallets/wallets.service.ts';

/**
 * A network with the name of its chain. `at` is the time of its creation, or of its assignment in the list of a wallet,
 * as PostgreSQL's text in UTC to the microsecond.
 */
export interface NetworkRow {
  id: string;
  name: string;
  chain: string;
  explorer_url: string | null;
  at: string;
}

/** A currency of a network. Its name and decimals are null where the platform has not sent them. */
export type CurrencyRow = Omit<Selectable<Tables['network_currencies']>, 'version'>;

const CurrencyList = keysetList({
  rows: (k) => k.selectFrom('network_currencies').select(['id', 'network_id', 'symbol', 'name', 'decimals']),
  where: (eb, { networkId }: { networkId?: string | undefined }) =>
    networkId === undefined ? [] : [eb('network_id', '=', networkId)],
  order: ['symbol', 'id'],
});

/**
 * Reads networks by keyset, oldest first, and assigns them to wallets (docs/contract.md, 4.4-01). Networks are the same
 * for every tenant; their assignments to wallets belong to a tenant.
 */
export class Networks extends keysetList({
  rows: (k) =>
    k
      .selectFrom('networks')
      .select((eb) => [
        'networks.id',
        'networks.name',
        'networks.explorer_url',
        eb
          .selectFrom('chains')
          .select('chains.name')
          .whereRef('chains.id', '=', 'networks.chain_id')
          .$asScalar()
          .$notNull()
          .as('chain'),
        'networks.created_at as at',
      ]),
  order: ['at', 'id'],
}) {
  /** The networks of each wallet as a nested list, in the order of their assignment. */
  readonly ofWallets: NestedList<NetworkRow>;
  /** The currencies of all networks, by symbol. */
  readonly currencies: KeysetList<CurrencyRow, { networkId?: string | undefined }>;
  readonly #deps: DbAndClock;

  constructor(deps: DbAndClock) {
    super(deps.db);
    this.#deps = deps;
    this.currencies = new CurrencyList(deps.db);
    this.ofWallets = nestedList(deps.db, {
      ownerIds: 'uuid',
      rows: (k) =>
        k
          .selectFrom('wallet_networks as held')
          .innerJoin('networks', 'networks.id', 'held.network_id')
          .innerJoin('chains', 'chains.id', 'networks.chain_id')
          .select(['networks.id', 'networks.name', 'networks.explorer_url', 'chains.name as chain'])
          .select(['held.created_at as at', 'held.wallet_id']),
      owner: 'wallet_id',
      order: ['at', 'id'],
    });
  }

  /** Returns currencies of networks by symbol, at most 1,000. */
  currenciesOf(
    nodeId: string,
    networkIds: readonly string[],
  ): Promise<Pick<Selectable<Tables['network_currencies']>, 'id' | 'network_id' | 'symbol'>[]> {
    return this.#deps.db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('network_currencies')
          .select(['id', 'network_id', 'symbol'])
          .where('network_id', 'in', networkIds)
          .orderBy('symbol')
          .limit(1_000),
      );
  }

  /**
   * Assigns a network of the wallet's chain to a wallet and returns the wallet. Repeated and concurrent calls create
   * one row.
   * @throws Refusal `not_found` when the wallet is not the tenant's or the network is unknown; `invalid_input` when the
   * network belongs to another chain.
   */
  async assign(author: Author, walletId: string, networkId: string): Promise<WalletRow> {
    const [wallet_id, network_id] = [idOrNotFound(walletId), idOrNotFound(networkId)];
    const { db, nowMs } = this.#deps;
    const [row] = await db.forNode(author.nodeId).run((k) =>
      k
        .selectFrom('wallets')
        .innerJoin('chains', 'chains.id', 'wallets.chain_id')
        .innerJoin('networks', (join) => join.on('networks.id', '=', network_id))
        .select(['wallets.id', 'wallets.account_id', 'wallets.created_at', 'chains.name as chain'])
        .select((eb) => eb('networks.chain_id', '=', eb.ref('wallets.chain_id')).as('isOfChain'))
        .where('wallets.id', '=', wallet_id),
    );
    const { isOfChain, ...wallet } = orNotFound(row);
    if (!isOfChain) throw invalidInput('network_id', "must be a network of the wallet's chain");
    const created_at = new Date(nowMs()).toISOString();
    // The wallet or the network may have been deleted after the query above.
    await withParent(() =>
      writeAs(db, author, (k) =>
        k
          .insertInto('wallet_networks')
          .values({ wallet_id, network_id, created_at })
          .onConflict((conflict) => conflict.columns(['wallet_id', 'network_id']).doNothing()),
      ),
    );
    return wallet;
  }
}
