import { randomUUID } from 'node:crypto';
import type { Delivery, NewTransaction } from '../../../src/features/transactions/notification.input.ts';
import { Transactions } from '../../../src/features/transactions/transactions.service.ts';
import type { TransactionTopic } from '../../../src/features/transactions/type-codes.rules.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import type { Database } from '../../../src/platform/database/open-database.ts';
import { beforeTests } from '../harness/before-tests.ts';

export const ADMIN: TransactionTopic = 'transactions.admin';
export const USER: TransactionTopic = 'transactions.user';

const AT = '2026-11-21T10:30:00Z';

/** A notification's members; what is not said is plain. */
export interface Told {
  id: string;
  status: number;
  type?: number;
  /** The second of `updated_at`. */
  second?: number;
  [member: string]: unknown;
}

export function delivery({ second = 0, ...told }: Told): Delivery {
  const updated = `2026-11-21T10:31:${String(second).padStart(2, '0')}Z`;
  const body = { type: 1, created_at: AT, updated_at: updated, ...told };
  return { body: Buffer.from(JSON.stringify(body)), correlationId: `c-${told.id}-${told.status}-${second}` };
}

/** The mirror on a database with two nodes. */
export interface Fixture {
  database: Database;
  db: Db;
  mirror: Transactions;
  woken: { nodeId: string; seq: bigint }[];
  /** The ids of transactions that the owner has moved to another tenant. */
  moved: string[];
  nodeIds: [string, string];
}

export async function fixtureOn(database: Database): Promise<Fixture> {
  const { db } = database;
  const nodeIds: [string, string] = [randomUUID(), randomUUID()];
  await db.unscoped('test').run((k) => k.insertInto('nodes').values(nodeIds.map((id) => ({ id, name: 'node' }))));
  const woken: Fixture['woken'] = [];
  const moved: string[] = [];
  return { database, db, woken, moved, nodeIds, mirror: mirrorOn(db, woken, [], moved) };
}

/** The mirror before the tests of a file or group: on a database of its own, or on one that they share. */
export function useMirror(database: Database | (() => Promise<Database>)): Fixture {
  return beforeTests(async () => {
    const own = typeof database === 'function' ? await database() : undefined;
    const fixture = await fixtureOn(own ?? (database as Database));
    return { ...fixture, [Symbol.asyncDispose]: async () => own?.[Symbol.asyncDispose]() };
  });
}

export function mirrorOn(
  db: Db,
  woken: Fixture['woken'] = [],
  conflicts: string[] = [],
  moved: string[] = [],
): Transactions {
  const wake = (nodeId: string, seq: bigint) => void woken.push({ nodeId, seq });
  return new Transactions({
    db,
    wake,
    conflicted: (id) => void conflicts.push(id),
    moved: (id) => void moved.push(id),
  });
}

/** A registration with an id of its own, of the first node. */
export function transactionOf({ nodeIds }: Fixture, parts: Partial<NewTransaction> = {}): NewTransaction {
  return { id: randomUUID(), nodeId: nodeIds[0], collection: 'token_transactions', type: 1, assetId: null, ...parts };
}

export async function newAsset({ db, nodeIds }: Fixture, nodeId = nodeIds[0]): Promise<string> {
  const [id, chain, network] = [randomUUID(), randomUUID(), randomUUID()];
  const door = db.unscoped('test');
  await door.run((k) => k.insertInto('chains').values({ id: chain, name: 'chain' }));
  await door.run((k) => k.insertInto('networks').values({ id: network, chain_id: chain, name: 'network' }));
  const asset = { id, name: 'asset', symbol: 'A', type: 'bond', network_id: network, status: 'draft' };
  await db.forNode(nodeId).run((k) => k.insertInto('assets').values({ ...asset, created_at: AT, updated_at: AT }));
  return id;
}

export async function assetAddress({ db }: Fixture, id: string): Promise<string | null> {
  const [row] = await db
    .unscoped('test')
    .run((k) => k.selectFrom('assets').select('contract_address').where('id', '=', id));
  return row?.contract_address ?? null;
}

/** A transaction as the table has it, but for the time of its registration. */
export async function rowOf({ db }: Fixture, id: string) {
  const [row] = await db.unscoped('test').run((k) => k.selectFrom('transactions').selectAll().where('id', '=', id));
  if (!row) return undefined;
  const { registered_at: _, ...rest } = row;
  return rest;
}

export async function eventsOf({ db }: Fixture, id: string) {
  return db
    .unscoped('test')
    .run((k) =>
      k
        .selectFrom('transaction_events')
        .select(['node_id', 'seq', 'status', 'previous_status', 'correlation_id', 'transaction'])
        .where('transaction_id', '=', id)
        .orderBy('seq'),
    );
}

/** The sequence numbers of a node's log, and its counter. */
export async function logOf({ db }: Fixture, nodeId: string) {
  const door = db.forNode(nodeId);
  const events = await door.run((k) => k.selectFrom('transaction_events').select('seq').orderBy('seq'));
  const [counter] = await door.run((k) => k.selectFrom('node_event_seq').select('seq'));
  return { seqs: events.map(({ seq }) => Number(seq)), counter: Number(counter?.seq ?? 0) };
}

/** How many notifications wait for their ids. */
export async function parkedOf({ db }: Fixture, id: string): Promise<number> {
  const rows = await db
    .unscoped('test')
    .run((k) => k.selectFrom('parked_notifications').select('id').where('id', '=', id));
  return rows.length;
}
