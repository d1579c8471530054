import { randomUUID } from 'node:crypto';
import type { ClientRecord } from '../../../src/access/identity/callers.ts';
import { ClientLimits } from '../../../src/access/limits/client-limits.ts';
import { QuotaCounts, QuotaStore } from '../../../src/access/limits/quota-counts.ts';
import { type Cache, MemoryCache } from '../../../src/platform/cache/cache.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import { clientRecord } from './client-record.ts';

/** A minute before a month ends. */
export const MONTHS_END = Date.UTC(2026, 11, 1);
const MONTH = '2026-11';

/** One process that counts. */
export type Counter = ReturnType<typeof counter>;

export interface CounterOptions {
  cache?: Cache;
  /** What saves in the place of the database. */
  save?: (save: QuotaStore['save']) => QuotaStore['save'];
}

/** A process on a database, with a cache of its own or a shared one. */
export function counter(db: Db, { cache = new MemoryCache(), save = (real) => real }: CounterOptions = {}) {
  const logged: string[] = [];
  const keep = (level: string) => (_fields: object, message: string) => void logged.push(`${level}: ${message}`);
  const log = { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') };
  const clock = { nowMs: MONTHS_END - 60_000 };
  const usage = new QuotaStore(db);
  const counts = new QuotaCounts({ usage: { save: save((quotas, lastUses) => usage.save(quotas, lastUses)) }, log });
  const limits = new ClientLimits({ cache, counts, log, nowMs: () => clock.nowMs });
  const headers = async (client: ClientRecord) => {
    const { headers: given } = await limits.check(client);
    return Object.fromEntries(given.flatMap((name, at) => (at % 2 === 0 ? [[name, given[at + 1] ?? '']] : [])));
  };
  return {
    limits: counts,
    /** What it has logged: `warn: …`. */
    logged,
    clock,
    /** The limit headers of a request. */
    headers,
    /** Counts a request: `passed`, or why it was refused. */
    count: async (client: ClientRecord) => (await limits.check(client)).refusal?.code ?? 'passed',
    /** How many requests it has counted by itself. */
    countedAlone: async () => (await limits.countedAlone.get()).values[0]?.value ?? 0,
  };
}

/** A client that is in the database, with these limits. */
export async function limitedClient(db: Db, limits: Partial<ClientRecord['limits']> = {}): Promise<ClientRecord> {
  const none = { perSecond: 0, perMinute: 0, perHour: 0, perMonth: 0 };
  const client = clientRecord({ clientId: randomUUID(), limits: { ...none, ...limits } });
  const door = db.unscoped('test');
  await door.run((k) =>
    k
      .insertInto('nodes')
      .values({ id: client.nodeId, name: 'Test' })
      .onConflict((c) => c.doNothing()),
  );
  await door.run((k) =>
    k.insertInto('clients').values({
      id: client.clientId,
      node_id: client.nodeId,
      name: client.name,
      grant_types: ['client_credentials'],
      scopes: [],
    }),
  );
  return client;
}

/** What the database has of a client's quota. */
export async function savedQuota(db: Db, { clientId }: ClientRecord, month = MONTH): Promise<number | undefined> {
  const [row] = await db
    .unscoped('test')
    .run((k) =>
      k.selectFrom('client_quotas').select('used').where('client_id', '=', clientId).where('month', '=', month),
    );
  return row && Number(row.used);
}

/** When the database says that a client was last used, in ms since the epoch. */
export async function lastUse(db: Db, { clientId }: ClientRecord): Promise<number | undefined> {
  const [row] = await db
    .unscoped('test')
    .run((k) => k.selectFrom('clients').select('last_used_at').where('id', '=', clientId));
  return row?.last_used_at === null || row === undefined ? undefined : Date.parse(row.last_used_at);
}

/** The answers of so many calls, one after the other. */
export async function times(count: number, work: () => Promise<string>): Promise<string[]> {
  const answers: string[] = [];
  for (let i = 0; i < count; i += 1) answers.push(await work());
  return answers;
}
