import type { Selectable } from 'kysely';
import { Counter } from 'prom-client';
import { backoffMs, pause } from '../../lib/backoff.ts';
import type { Log } from '../../lib/log.ts';
import { WorkLoop } from '../../lib/work-loop.ts';
import type { Db } from '../../platform/database/database.ts';
import { textArray } from '../../platform/database/sql-state.ts';
import type { UnscopedDatabase } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';
import type { TransactionOwner } from './transaction-owner.ts';
import type { Transactions } from './transactions.service.ts';

type DueLookup = Pick<Selectable<Tables['transaction_lookups']>, 'id' | 'attempts'>;

/** How many are taken, from the ones that are due now; they are nobody else's until then. */
interface Claim {
  limit: number;
  nowMs: number;
  untilMs: number;
}

/** The ids that notifications wait for and nobody has registered; each call is one statement unless it says otherwise. */
export class LookupStore {
  readonly #door: UnscopedDatabase<Tables>;

  constructor(db: Db) {
    this.#door = db.unscoped('nobody knows yet whose the ids are');
  }

  /** Notifications of these ids wait: in the transaction that parks them. */
  async add(ids: Iterable<string>): Promise<void> {
    const waiting = [...ids];
    if (waiting.length === 0) return;
    await this.#door.raw(
      (sql) => sql`
        insert into transaction_lookups (id) select id from unnest(${textArray(waiting)}::text[]) as w (id)
        on conflict do nothing`,
    );
  }

  /** The id is registered. */
  async remove(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await this.#door.raw((sql) => sql`delete from transaction_lookups where id = any (${textArray(ids)}::text[])`);
  }

  /** Takes those that have waited longest, new ones first, and counts the attempt. */
  async claim({ limit, nowMs, untilMs }: Claim): Promise<DueLookup[]> {
    return this.#door.run((k) =>
      k
        // Not as a condition: the planner may run that more than once, and take more than the limit.
        .with(
          (cte) => cte('due').materialized(),
          (due) =>
            due
              .selectFrom('transaction_lookups')
              .select('id')
              .where('due_at', '<=', iso(nowMs))
              .orderBy('due_at')
              .limit(limit)
              .forUpdate()
              .skipLocked(),
        )
        .updateTable('transaction_lookups')
        .from('due')
        .set((eb) => ({ attempts: eb('transaction_lookups.attempts', '+', 1), due_at: iso(untilMs) }))
        .whereRef('transaction_lookups.id', '=', 'due.id')
        .returning(['transaction_lookups.id', 'transaction_lookups.attempts']),
    );
  }

  /** Nobody asks before a time. */
  async postpone(id: string, untilMs: number): Promise<void> {
    await this.#door.run((k) =>
      k
        .updateTable('transaction_lookups')
        .set({ due_at: iso(untilMs) })
        .where('id', '=', id),
    );
  }

  /** Mends what a process of an earlier version has left: it parks and registers without this table. Two statements. */
  async mend(): Promise<void> {
    await this.#door.run((k) =>
      k
        .insertInto('transaction_lookups')
        .columns(['id'])
        .expression((eb) =>
          eb
            .selectFrom('parked_notifications as parked')
            .select('parked.id')
            .distinct()
            .where(({ not, exists, selectFrom }) =>
              not(exists(selectFrom('transactions').select('id').whereRef('transactions.id', '=', 'parked.id'))),
            ),
        )
        .onConflict((conflict) => conflict.doNothing()),
    );
    await this.#door.run((k) =>
      k
        .deleteFrom('transaction_lookups')
        .where(({ exists, selectFrom }) =>
          exists(selectFrom('transactions').select('id').whereRef('transactions.id', '=', 'transaction_lookups.id')),
        ),
    );
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** How long an id rests after so many attempts without a registration: 1 s, doubling up to 1 h. */
export function lookupBackoffMs(attempts: number): number {
  return backoffMs(attempts, { minMs: 1_000, maxMs: 3_600_000 });
}

interface LookupsParts {
  db: Db;
  log: Log;
  nowMs(): number;
  transactions: Pick<Transactions, 'registerByOwner'>;
  owner: Pick<TransactionOwner, 'find'>;
  /** The owner has answered by then, or does not. */
  timeoutMs: number;
}

/** What has come of a lookup. */
type Outcome = 'registered' | 'unknown' | 'failed';

/** How many ids one process asks for at once. */
export const LOOKUPS_AT_ONCE = 8;
/** An id that is parked now is asked for by then: what the topic registers meanwhile is not. */
const POLL_MS = 1_000;
/** Beside the owner's time: until then an id is of the process that has taken it, if that has died as well. */
const LEASE_MS = 10_000;
const MEND_EVERY_MS = 3_600_000;

/**
 * Asks the owning service for ids whose notifications are parked, and registers what it says. The queue is a table: it
 * survives restarts, and of several processes one takes an id at a time. An id without a registration rests for longer
 * and longer; while the owner fails altogether the process rests between its questions, too.
 */
export class TransactionLookups {
  /** For the registry of the process. */
  readonly outcomes: Counter<'outcome'>;
  readonly #parts: LookupsParts;
  readonly #store: LookupStore;
  readonly #loop: WorkLoop;
  readonly #underWay = new Set<Promise<void>>();
  /** In a row, of any ids. */
  #failures = 0;
  #mendedAtMs: number | undefined;

  constructor(parts: LookupsParts) {
    this.#parts = parts;
    this.#store = new LookupStore(parts.db);
    this.outcomes = new Counter({
      name: 'portcullis_transaction_lookups_total',
      help: 'Questions to the owner of transactions, by outcome.',
      labelNames: ['outcome'],
      registers: [],
    });
    this.#loop = new WorkLoop({
      iterate: async (signal) => {
        if (this.#failures > 0) await pause(backoffMs(this.#failures), signal);
        await this.#mend();
        return this.iterate(signal);
      },
      onFailure: (error) => parts.log.warn({ err: error }, 'lookups of transactions wait: the database is away'),
      pollMs: POLL_MS,
    });
  }

  /** Asks from now on. */
  start(): void {
    this.#loop.start();
  }

  /** Breaks off what is under way; others may ask for it at once. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.settled();
  }

  /**
   * Begins to ask for ids that are due, as many as there is room for, and waits until there is room again; says whether
   * there was one. `signal` breaks off what it has begun.
   * @throws what the database throws.
   */
  async iterate(signal: AbortSignal): Promise<boolean> {
    const nowMs = this.#parts.nowMs();
    const untilMs = nowMs + this.#parts.timeoutMs + LEASE_MS;
    const due = await this.#store.claim({ limit: LOOKUPS_AT_ONCE - this.#underWay.size, nowMs, untilMs });
    for (const lookup of due) {
      const asking: Promise<void> = this.#lookUp(lookup, signal).finally(() => this.#underWay.delete(asking));
      this.#underWay.add(asking);
    }
    if (this.#underWay.size >= LOOKUPS_AT_ONCE) await Promise.race(this.#underWay);
    return due.length > 0;
  }

  /** Resolves when every question that was begun has its outcome. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /** Never rejects: where the database is away as well, the id is free again when its time is over. */
  async #lookUp({ id, attempts }: DueLookup, signal: AbortSignal): Promise<void> {
    const { log, nowMs } = this.#parts;
    try {
      const outcome = await this.#ask(id, signal);
      if (outcome === 'unknown') await this.#store.postpone(id, nowMs() + lookupBackoffMs(attempts));
      this.#failures = 0;
      this.outcomes.inc({ outcome });
    } catch (error) {
      if (!signal.aborted) {
        this.#failures += 1;
        this.outcomes.inc({ outcome: 'failed' satisfies Outcome });
        if (this.#failures === 1) {
          log.warn({ err: error, transaction_id: id }, 'the owner of transactions could not be asked for one');
        }
      }
      const untilMs = signal.aborted ? nowMs() : nowMs() + lookupBackoffMs(attempts);
      await this.#store.postpone(id, untilMs).catch(() => undefined);
    }
  }

  async #ask(id: string, signal: AbortSignal): Promise<Outcome> {
    const { owner, transactions, log } = this.#parts;
    const found = await owner.find(id, signal);
    if (!found) return 'unknown';
    const { moved } = await transactions.registerByOwner(found);
    // A process of an earlier version may have registered it.
    await this.#store.remove([id]);
    if (moved) log.warn({ transaction_id: id }, 'a transaction moved to the node that its owner names');
    return 'registered';
  }

  async #mend(): Promise<void> {
    const nowMs = this.#parts.nowMs();
    if (this.#mendedAtMs !== undefined && nowMs - this.#mendedAtMs < MEND_EVERY_MS) return;
    await this.#store.mend();
    this.#mendedAtMs = nowMs;
  }
}
