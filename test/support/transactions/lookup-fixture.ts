import type { NewTransaction } from '../../../src/features/transactions/notification.input.ts';
import { TransactionLookups } from '../../../src/features/transactions/transaction-lookups.service.ts';
import type { Transactions } from '../../../src/features/transactions/transactions.service.ts';
import { type Log, silentLog } from '../../../src/lib/log.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import type { Fixture } from './fixture.ts';

/** An owner, and the ids that it was asked for. */
export interface Asked {
  asked: string[];
  find(id: string, signal: AbortSignal): Promise<NewTransaction | undefined>;
}

export function askedOwner(find: Asked['find']): Asked {
  const asked: string[] = [];
  return {
    asked,
    find: (id, signal) => {
      asked.push(id);
      return find(id, signal);
    },
  };
}

interface LookupOptions {
  nowMs?: () => number;
  mirror?: Transactions;
  db?: Db;
  log?: Log;
}

/** The lookups of one process on a fixture; `stop` breaks off what they have begun. */
export function lookupsOn(fixture: Fixture, owner: Asked, options: LookupOptions = {}) {
  const { nowMs = Date.now, mirror = fixture.mirror, db = fixture.db, log = silentLog } = options;
  const stopping = new AbortController();
  const lookups = new TransactionLookups({ db, log, nowMs, transactions: mirror, owner, timeoutMs: 5_000 });
  return { lookups, signal: stopping.signal, stop: () => stopping.abort() };
}

/** The ids that wait for a lookup. */
export async function lookupsLeft({ db }: Fixture): Promise<string[]> {
  const rows = await db.unscoped('test').run((k) => k.selectFrom('transaction_lookups').select('id').orderBy('id'));
  return rows.map(({ id }) => id);
}

/** When an id is to be asked for, in ms since 1970. */
export async function dueOf({ db }: Fixture, id: string): Promise<number> {
  const [row] = await db.unscoped('test').raw<{ due: string }>(
    (text) => text`select (extract(epoch from due_at) * 1000)::bigint::text as due from transaction_lookups
      where id = ${id}`,
  );
  return Number(row?.due);
}
