import { randomUUID } from 'node:crypto';
import type { Db, ScopedKysely } from '../../../src/platform/database/database.ts';

const AT = '2026-11-21T10:30:00Z';
const TABLES = ['accounts', 'assets', 'networks', 'users', 'wallet_networks', 'wallets'] as const;

export type Query<Row = object> = (k: ScopedKysely) => { execute(): Promise<Row[]> };

/** The ids of one node's rows. */
export interface NodeRows {
  nodeId: string;
  accountIds: string[];
  walletIds: string[];
  userIds: string[];
  assetIds: string[];
}

export interface TwoNodes {
  mine: NodeRows;
  other: NodeRows;
  chainIds: string[];
  networkIds: string[];
}

/** What a query gave, and what the tables then held, each row as text. */
export interface Observation {
  rows: string[];
  mine: string[];
  other: string[];
}

/** Two nodes whose rows differ in their ids alone, so that whatever crosses from one to the other shows. */
export async function seedTwoNodes(db: Db): Promise<TwoNodes> {
  const door = db.unscoped('test');
  const chainIds = [randomUUID(), randomUUID()];
  const networkIds = [randomUUID(), randomUUID(), randomUUID()];
  await door.run((k) => k.insertInto('chains').values(chainIds.map((id) => ({ id, name: 'chain' }))));
  await door.run((k) =>
    k
      .insertInto('networks')
      .values(networkIds.map((id, at) => ({ id, chain_id: chainIds[at % 2] ?? '', name: `network ${at}` }))),
  );
  const mine = await seedNode(db, chainIds, networkIds);
  const other = await seedNode(db, chainIds, networkIds);
  return { mine, other, chainIds, networkIds };
}

async function seedNode(db: Db, chainIds: string[], networkIds: string[]): Promise<NodeRows> {
  const nodeId = randomUUID();
  await db.unscoped('test').run((k) => k.insertInto('nodes').values({ id: nodeId, name: 'node' }));
  const door = db.forNode(nodeId);
  const ids = (count: number) => Array.from({ length: count }, () => randomUUID());
  const [accountIds, walletIds, userIds, assetIds] = [ids(3), ids(3), ids(2), ids(2)];
  const times = { created_at: AT, updated_at: AT };
  const accounts = accountIds.map((id, at) => {
    return { id, name: `account ${at}`, type: 'organisation', status: 1, ...times };
  });
  await door.run((k) => k.insertInto('accounts').values(accounts));
  // The third account has no wallet, the third wallet no network.
  const wallets = walletIds.map((id, at) => {
    return { id, account_id: accountIds[at % 2] ?? '', chain_id: chainIds[at % 2] ?? '', ...times };
  });
  await door.run((k) => k.insertInto('wallets').values(wallets));
  const links = walletIds.slice(0, 2).map((id, at) => ({ wallet_id: id, network_id: networkIds[at] ?? '' }));
  await door.run((k) => k.insertInto('wallet_networks').values(links));
  const users = userIds.map((id, at) => {
    return { id, email: `${at}@example.com`, external_id: `user-${at}`, address: `0x${at}` };
  });
  await door.run((k) => k.insertInto('users').values(users));
  const assets = assetIds.map((id, at) => {
    const kind = { symbol: 'A', type: 'bond', status: 'draft' };
    return { id, name: `asset ${at}`, network_id: networkIds[at] ?? '', ...kind, ...times };
  });
  await door.run((k) => k.insertInto('assets').values(assets));
  return { nodeId, accountIds, walletIds, userIds, assetIds };
}

/** What the tenant's door gives, and what it leaves. */
export function throughTheDoor(db: Db, { mine, other }: TwoNodes, query: Query): Promise<Observation> {
  return observed(db, { mine, other }, () => db.forNode(mine.nodeId).run(query));
}

/** What the same query gives where the other node has no rows: the meaning of a scoped query. */
export function withoutTheOther(db: Db, { mine, other }: Pick<TwoNodes, 'mine' | 'other'>, query: Query) {
  return observed(db, { mine, other }, async () => {
    const door = db.unscoped('test');
    for (const table of ['wallet_networks', 'wallets', 'accounts', 'users', 'assets'] as const) {
      await door.run((k) => k.deleteFrom(table).where('node_id', '=', other.nodeId));
    }
    return door.run((k) => query(k as unknown as ScopedKysely));
  });
}

/** The rows of the tables as they are. */
export async function allRows(db: Db, { mine, other }: Pick<TwoNodes, 'mine' | 'other'>) {
  const rows: Record<string, unknown>[] = [];
  for (const table of TABLES) {
    const found: object[] = await db.unscoped('test').run((k) => k.selectFrom(table).selectAll());
    rows.push(...found.map((row) => ({ table, ...row })));
  }
  return { mine: textsOf(rows, mine.nodeId), other: textsOf(rows, other.nodeId) };
}

class Rollback extends Error {}

/** Runs `work` in a transaction that leaves no trace. */
async function observed(
  db: Db,
  nodes: Pick<TwoNodes, 'mine' | 'other'>,
  work: () => Promise<object[]>,
): Promise<Observation> {
  let observation: Observation | undefined;
  try {
    await db.transaction(async () => {
      const rows = (await work()).map(textOf).sort();
      observation = { rows, ...(await allRows(db, nodes)) };
      throw new Rollback();
    });
  } catch (error) {
    if (!(error instanceof Rollback)) throw error;
  }
  if (!observation) throw new Error('nothing was observed');
  return observation;
}

function textsOf(rows: Record<string, unknown>[], nodeId: string): string[] {
  return rows
    .filter((row) => row.node_id === nodeId)
    .map(textOf)
    .sort();
}

function textOf(row: object): string {
  return JSON.stringify(row, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));
}
