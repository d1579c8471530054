import { randomUUID } from 'node:crypto';
import { REFERENCE_KINDS } from '../../../src/events/bus/topics.ts';
import { parseReferenceChange } from '../../../src/features/reference/reference.input.ts';
import {
  type LogPosition,
  type ReferenceChange,
  type ReferenceKind,
  TABLES,
} from '../../../src/features/reference/reference.rules.ts';
import { Reference } from '../../../src/features/reference/reference.service.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import type { Database } from '../../../src/platform/database/open-database.ts';

export const NOW = '2026-11-21T12:00:00.000Z';
const AT = '2026-01-05T09:30:00.123456Z';

export interface Fixture {
  database: Database;
  db: Db;
  reference: Reference;
  dropped: string[];
}

export function fixtureOn(database: Database): Fixture {
  const dropped: string[] = [];
  const reference = new Reference({
    db: database.db,
    nowMs: () => Date.parse(NOW),
    dropped: (kind, id, reason) => void dropped.push(`${kind} ${id}: ${reason}`),
  });
  return { database, db: database.db, reference, dropped };
}

/** A row of a kind, as its owner writes it. */
export function put(kind: ReferenceKind, key: string, version: number, members: object = {}): ReferenceChange {
  return parseReferenceChange(kind, key, { ...PLAIN_ROWS[kind], ...members, version });
}

export function tombstone(kind: ReferenceKind, key: string, position?: LogPosition): ReferenceChange {
  return { ...parseReferenceChange(kind, key, null), position };
}

const times = { created_at: AT, updated_at: AT };
const PLAIN_ROWS: Readonly<Record<ReferenceKind, object>> = {
  nodes: { name: 'nodes' },
  chains: { name: 'chains' },
  networks: { name: 'networks' },
  currencies: { symbol: 'EURC' },
  accounts: { name: 'Account', type: 'organisation', status: 1, ...times },
  wallets: times,
  assets: { name: 'Asset', symbol: 'A', type: 'bond', status: 'draft', ...times },
};

/** One row of each kind, tied to each other: a family. */
export function newFamily() {
  const ids = Object.fromEntries(REFERENCE_KINDS.map((kind) => [kind, randomUUID()])) as Record<ReferenceKind, string>;
  const owned = { node_id: ids.nodes };
  const members = {
    nodes: {},
    chains: {},
    networks: { chain_id: ids.chains },
    currencies: { network_id: ids.networks },
    accounts: owned,
    wallets: { ...owned, account_id: ids.accounts, chain_id: ids.chains },
    assets: { ...owned, network_id: ids.networks },
  } satisfies Record<ReferenceKind, object>;
  const version = (kind: ReferenceKind, number: number, more: object = {}) =>
    put(kind, ids[kind], number, { ...members[kind], ...more });
  const all = (number = 1) => REFERENCE_KINDS.map((kind) => version(kind, number));
  return { ids, members, version, all };
}

/** Everything that the tables have of some ids, without the times of the database's own clock. */
export async function stateOf({ db }: Fixture, ids: readonly string[]) {
  const door = db.unscoped('test');
  const state: Record<string, unknown[]> = {};
  for (const kind of REFERENCE_KINDS) {
    const columns = ['id', 'version', ...Object.keys(TABLES[kind].columns)];
    state[kind] = await door.raw(
      (sql) => sql<object>`
        select ${sql.join(columns.map((name) => sql.ref(name)))} from ${sql.table(TABLES[kind].table)}
        where id = any(${ids}::uuid[]) order by id`,
    );
  }
  state.parked = await door.raw(
    (sql) => sql<object>`select * from reference_parked where id = any(${ids}::uuid[]) order by kind, id`,
  );
  return state;
}

/** The row of an id; undefined where there is none. */
export async function rowOf({ db }: Fixture, kind: ReferenceKind, id: string) {
  const [row] = await db
    .unscoped('test')
    .raw((sql) => sql<Record<string, unknown>>`select * from ${sql.table(TABLES[kind].table)} where id = ${id}`);
  return row;
}
