import type { NotNull } from 'kysely';
import type { Db, ScopedKysely } from '../../platform/database/database.ts';
import { keysetList, type NestedList, nestedList } from '../../platform/database/keyset-list.ts';

/** A wallet with the name of its chain; times are PostgreSQL's text in UTC, to the microsecond. */
export interface WalletRow {
  id: string;
  account_id: string;
  chain: string;
  created_at: string;
}

/** Selects wallets. The chain is a left join, which PostgreSQL leaves out where wallets are only counted. */
function wallets(k: ScopedKysely) {
  return k
    .selectFrom('wallets')
    .leftJoin('chains', 'chains.id', 'wallets.chain_id')
    .select(['wallets.id', 'wallets.account_id', 'wallets.created_at', 'chains.name as chain'])
    .$narrowType<{ chain: NotNull }>();
}

/** Reads the wallets of a tenant by keyset, oldest first. */
export class WalletPages extends keysetList({
  rows: wallets,
  where: (
    eb,
    {
      id,
      accountId,
      networkId,
    }: {
      id?: string | undefined;
      accountId?: string | undefined;
      /** The id of a network that must be assigned to the wallet. */
      networkId?: string | undefined;
    },
  ) => [
    ...(id === undefined ? [] : [eb('id', '=', id)]),
    ...(accountId === undefined ? [] : [eb('account_id', '=', accountId)]),
    ...(networkId === undefined
      ? []
      : [
          eb(
            'id',
            'in',
            eb.selectFrom('wallet_networks').select('wallet_networks.wallet_id').where('network_id', '=', networkId),
          ),
        ]),
  ],
  order: ['created_at', 'id'],
}) {
  /** The wallets of each account as a nested list. */
  readonly ofAccounts: NestedList<WalletRow>;

  constructor(db: Db) {
    super(db);
    this.ofAccounts = nestedList(db, {
      ownerIds: 'uuid',
      rows: wallets,
      owner: 'account_id',
      order: ['created_at', 'id'],
    });
  }
}
