import { Pool } from 'pg';
import { type PeerOptions, POOL_SIZE } from './peer.ts';

export interface AccountRow {
  id: string;
  name: string;
  status: number;
}

export interface WalletRow {
  id: string;
  account_id: string;
  chain: string;
}

const ACCOUNTS = `select id, name, status from accounts
  where node_id = $1 and deleted_at is null order by created_at, id limit $2`;

const WALLETS = `select wallet.id, wallet.account_id, chains.name as chain
  from unnest($2::uuid[]) as wanted (id)
  cross join lateral (
    select id, account_id, chain_id, created_at from wallets
    where node_id = $1 and account_id = wanted.id order by created_at, id limit $3
  ) wallet
  join chains on chains.id = wallet.chain_id
  order by wallet.created_at, wallet.id`;

/** The first accounts of a node and the first wallets of each, a prepared statement for either: as one writes it by hand. */
export function openRows({ databaseUrl, nodeId }: PeerOptions) {
  const pool = new Pool({ connectionString: databaseUrl, max: POOL_SIZE });
  return {
    async accounts(first: number): Promise<AccountRow[]> {
      const { rows } = await pool.query<AccountRow>({ name: 'accounts', text: ACCOUNTS, values: [nodeId, first] });
      return rows;
    },
    /** Those of each account, in the order of the accounts. */
    async wallets(accountIds: readonly string[], first: number): Promise<WalletRow[][]> {
      const values = [nodeId, accountIds, first];
      const { rows } = await pool.query<WalletRow>({ name: 'wallets', text: WALLETS, values });
      const byAccount = new Map<string, WalletRow[]>(accountIds.map((id) => [id, []]));
      for (const row of rows) byAccount.get(row.account_id)?.push(row);
      return [...byAccount.values()];
    },
  };
}

/** What `openRows` gives. */
export type Rows = ReturnType<typeof openRows>;
