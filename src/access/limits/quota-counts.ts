import type { Log } from '../../lib/log.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { WorkLoop } from '../../lib/work-loop.ts';
import { monthText } from '../../platform/cache/counts.rules.ts';
import type { Db } from '../../platform/database/database.ts';
import type { ClientRecord } from '../identity/callers.ts';

/** The number of requests of a client in one month, as far as this process knows it. */
interface MonthUse {
  readonly monthAt: number;
  /** Whether the cache or the database has returned a count for the month. */
  isKnown: boolean;
  /** The largest count that the cache or the database has returned. */
  seen: number;
  /** The requests that this process counted while the cache was down and that are being saved. */
  saving: number;
  /** The requests that this process counted while the cache was down and that are not being saved yet. */
  own: number;
  /** The count in the database. */
  saved: number;
}

/** The requests of one client, and which of them are not yet saved in the database. */
export class QuotaCount {
  readonly clientId: string;
  readonly #nodeId: string;
  /** Whether the cache must be given the database's count with the next request. */
  isUnsynced = true;
  /** The read of the count in the database, while it is in progress. */
  seeding: { monthAt: number; count: Promise<number> } | undefined;
  /** A count that the cache may have lost and must be given. */
  #seed: number | undefined;
  #lastUsedAtMs = 0;
  #savedLastUsedAtMs = 0;
  #month: MonthUse | undefined;
  /** Earlier months that are not fully saved yet. */
  #earlier: MonthUse[] = [];

  constructor({ clientId, nodeId }: ClientRecord) {
    this.clientId = clientId;
    this.#nodeId = nodeId;
  }

  /** Records the time of a request, in ms since 1970. */
  used(atMs: number): void {
    if (atMs > this.#lastUsedAtMs) this.#lastUsedAtMs = atMs;
  }

  /** Records a count that the cache or the database has returned. */
  noteCount(monthAt: number, count: number): void {
    const month = this.#of(monthAt);
    if (!month) return;
    month.isKnown = true;
    // A smaller count means that the cache has lost the earlier one.
    if (count < month.seen) this.#seed = month.seen;
    else month.seen = count;
  }

  /** Counts a request that the cache did not count. */
  countedAlone(monthAt: number): void {
    const month = this.#of(monthAt);
    if (month) month.own += 1;
  }

  /** Returns the number of requests of a month; undefined when unknown. */
  known(monthAt: number): number | undefined {
    const month = this.#month;
    return month?.isKnown && month.monthAt === monthAt ? month.seen + month.saving + month.own : undefined;
  }

  /** Returns the count to give to the cache with the next request, if there is one, and clears it. */
  takeSeed(monthAt: number): number | undefined {
    if (this.#seed === undefined || this.#month?.monthAt !== monthAt) return undefined;
    const seed = this.#seed;
    this.#seed = undefined;
    return seed;
  }

  /**
   * Returns the number of requests of a month for the caller to write to the cache. It includes those that this process
   * counted locally while the cache was down, and marks them as written, so that a later call does not add them again.
   */
  handOver(monthAt: number): number {
    const month = this.#month;
    if (month?.monthAt !== monthAt) return 0;
    month.seen += month.own;
    month.own = 0;
    return month.seen + month.saving;
  }

  get isSaved(): boolean {
    const month = this.#month;
    return this.#lastUsedAtMs <= this.#savedLastUsedAtMs && this.#earlier.length === 0 && !(month && isUnsaved(month));
  }

  /**
   * Returns the unsaved counts. The caller must call one of `onSaved` and `failed` of the result, after saving them,
   * before it calls this again.
   */
  takeUnsaved(monthAt?: number) {
    if (monthAt !== undefined) this.#of(monthAt);
    const months = [...this.#earlier, ...(this.#month ? [this.#month] : [])].filter(
      (month) => isUnsaved(month) || month.monthAt === monthAt,
    );
    const quotas = months.map((month) => {
      month.saving = month.own;
      month.own = 0;
      return { ...this.#ids, month: monthText(month.monthAt), seen: month.seen, own: month.saving };
    });
    const lastUsedAtMs = this.#lastUsedAtMs;
    return {
      quotas,
      lastUses:
        lastUsedAtMs > this.#savedLastUsedAtMs ? [{ ...this.#ids, at: new Date(lastUsedAtMs).toISOString() }] : [],
      /**
       * Records that the save succeeded. `used` are the counts in the database after it, in the order of `quotas`;
       * undefined for a deleted client.
       */
      onSaved: (used: readonly (number | undefined)[]) => {
        this.#savedLastUsedAtMs = lastUsedAtMs;
        for (const [at, month] of months.entries()) this.#isSaved(month, quotas[at]?.seen ?? 0, used[at]);
        this.#earlier = this.#earlier.filter(isUnsaved);
      },
      failed: () => {
        for (const month of months) {
          month.own += month.saving;
          month.saving = 0;
        }
      },
    };
  }

  #isSaved(month: MonthUse, saved: number, used: number | undefined): void {
    month.saving = 0;
    month.isKnown = true;
    // The client was deleted: nothing of it is saved again.
    month.saved = used ?? Number.POSITIVE_INFINITY;
    if (used === undefined) return;
    month.seen = Math.max(month.seen, used);
    if (used > saved && month === this.#month) this.#seed = Math.max(this.#seed ?? 0, used);
  }

  #of(monthAt: number): MonthUse | undefined {
    const month = this.#month;
    if (month && month.monthAt >= monthAt) return month.monthAt === monthAt ? month : undefined;
    if (month && isUnsaved(month)) this.#earlier.push(month);
    this.#seed = undefined;
    this.#month = { monthAt, isKnown: false, seen: 0, saving: 0, own: 0, saved: 0 };
    return this.#month;
  }

  get #ids() {
    return { client_id: this.clientId, node_id: this.#nodeId };
  }
}

function isUnsaved({ seen, own, saving, saved }: MonthUse): boolean {
  return own > 0 || saving > 0 || seen > saved;
}

const SAVE_EVERY_MS = 2_000;
const LAST_SAVE_MS = 5_000;
const MAX_IN_ONE_SAVE = 1_000;
const MAX_CLIENTS = 10_000;

/** Counts that are saved by one statement, for calls of `sync`. */
interface Batch {
  /** The counts, each with the month that is asked for. */
  readonly monthsByUse: Map<QuotaCount, number>;
  /** Resolves with the numbers of requests in that month. */
  readonly counts: Promise<ReadonlyMap<QuotaCount, number>>;
}

/** Counts the requests of all clients in memory, and saves the counts every two seconds and when it stops. */
export class QuotaCounts extends WorkLoop {
  readonly #deps;
  readonly #uses = new Map<string, QuotaCount>();
  /** A mutex, so that saves run one at a time and no count is saved twice. */
  readonly #saving = new Semaphore({ permits: 1 });
  /** The batch that has not begun. */
  #batch: Batch | undefined;

  constructor(deps: { usage: Pick<QuotaStore, 'save'>; log: Log }) {
    super({
      iterate: () => this.save().then(() => false),
      onFailure: (error) => deps.log.warn({ err: error }, 'could not save quota counters; retrying'),
      pollMs: SAVE_EVERY_MS,
    });
    this.#deps = deps;
  }

  /** Stops the saving, after saving a last time, for at most five seconds. */
  override async stop(): Promise<void> {
    const saved = super.stop().then(() => this.save());
    await withTimeout(saved, LAST_SAVE_MS).catch(() => undefined);
  }

  of(client: ClientRecord): QuotaCount {
    return this.#uses.getOrInsertComputed(client.clientId, () => new QuotaCount(client));
  }

  /** Saves all unsaved counts; those that fail are saved the next time. @throws what the database throws. */
  save(): Promise<void> {
    return this.#next(async () => {
      const unsaved = [...this.#uses.values()].filter((use) => !use.isSaved);
      for (let first = 0; first < unsaved.length; first += MAX_IN_ONE_SAVE) {
        await this.#saveUses(unsaved.slice(first, first + MAX_IN_ONE_SAVE).map((use) => ({ use })));
      }
      this.#evictSaved();
    });
  }

  /**
   * Saves the counts of a client and returns its number of requests in the month. Concurrent calls share one statement.
   * @throws what the database throws.
   */
  async sync(use: QuotaCount, monthAt: number): Promise<number> {
    let batch = this.#batch;
    // When a month ends, a batch may have the client with the month before.
    if (!batch || (batch.monthsByUse.get(use) ?? monthAt) !== monthAt) batch = this.#newBatch();
    batch.monthsByUse.set(use, monthAt);
    return (await batch.counts).get(use) ?? 0;
  }

  #newBatch(): Batch {
    const monthsByUse: Batch['monthsByUse'] = new Map();
    const counts = this.#next(async () => {
      // Waits one microtask, so that all calls in this tick share the statement.
      await undefined;
      if (this.#batch === batch) this.#batch = undefined;
      const uses = [...monthsByUse].map(([use, monthAt]) => ({ use, monthAt }));
      await this.#saveUses(uses);
      return new Map(uses.map(({ use, monthAt }) => [use, use.known(monthAt) ?? 0]));
    });
    const batch = { monthsByUse, counts };
    this.#batch = batch;
    return batch;
  }

  async #saveUses(uses: readonly { use: QuotaCount; monthAt?: number }[]): Promise<void> {
    const unsaved = uses.map(({ use, monthAt }) => use.takeUnsaved(monthAt));
    try {
      const used = await this.#deps.usage.save(
        unsaved.flatMap(({ quotas }) => quotas),
        unsaved.flatMap(({ lastUses }) => lastUses),
      );
      let at = 0;
      for (const { quotas, onSaved } of unsaved) {
        onSaved(used.slice(at, at + quotas.length));
        at += quotas.length;
      }
    } catch (error) {
      for (const { failed } of unsaved) failed();
      throw error;
    }
  }

  #next<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#saving.run(undefined, work);
  }

  #evictSaved(): void {
    if (this.#uses.size <= MAX_CLIENTS) return;
    for (const [clientId, use] of this.#uses) if (use.isSaved && !use.seeding) this.#uses.delete(clientId);
  }
}

/** The number of requests of a client in a month (`YYYY-MM`, UTC), as far as a process knows it. */
interface QuotaRow extends Omit<LastUseRow, 'at'> {
  month: string;
  /** The largest count that the cache or the database has returned. */
  seen: number;
  /** The requests that this process has counted since then without the cache. */
  own: number;
}

/** The time of the last request of a client, in ISO 8601. */
interface LastUseRow {
  client_id: string;
  node_id: string;
  at: string;
}

/** Stores the counts and last uses of clients in the database, which keeps them when the cache is lost. */
export class QuotaStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Saves counts and last uses in one transaction. A count becomes the larger of stored and `seen`, plus `own`; a last
   * use never goes back. Returns the stored counts in the order of `quotas`; undefined for a client that was deleted.
   */
  async save(quotas: readonly QuotaRow[], lastUses: readonly LastUseRow[]): Promise<(number | undefined)[]> {
    return this.#db.transaction(async () => {
      if (lastUses.length > 0) await this.#saveLastUses(lastUses);
      return quotas.length > 0 ? this.#saveQuotas(quotas) : [];
    });
  }

  async #saveQuotas(rows: readonly QuotaRow[]): Promise<(number | undefined)[]> {
    const unscoped = this.#db.unscoped('quota counters of all nodes are saved together');
    const json = JSON.stringify(rows);
    // The rows are written in the same order by every process, so that no deadlock arises.
    let saved = await unscoped.raw<{ client_id: string; month: string; used: string }>(
      (sql) => sql`
        insert into client_quotas as saved (client_id, node_id, month, used)
        select client_id, node_id, month, seen
        from json_to_recordset(${json}::json) as t (client_id uuid, node_id uuid, month text, seen bigint)
        where exists (select from clients c where c.id = t.client_id and c.node_id = t.node_id)
        order by client_id, month
        on conflict (client_id, month) do update set used = greatest(saved.used, excluded.used)
        returning client_id, month, used`,
    );
    if (rows.some(({ own }) => own > 0)) {
      const added = await unscoped.raw<(typeof saved)[number]>(
        (sql) => sql`
          update client_quotas saved set used = saved.used + t.own
          from json_to_recordset(${json}::json) as t (client_id uuid, month text, own bigint)
          where saved.client_id = t.client_id and saved.month = t.month and t.own > 0
          returning saved.client_id, saved.month, saved.used`,
      );
      saved = [...saved, ...added];
    }
    const used = new Map(saved.map((row) => [`${row.client_id} ${row.month}`, Number(row.used)]));
    return rows.map(({ client_id, month }) => used.get(`${client_id} ${month}`));
  }

  async #saveLastUses(rows: readonly LastUseRow[]): Promise<void> {
    const json = JSON.stringify(rows);
    await this.#db.unscoped('last uses of clients of all nodes are saved together').raw(
      (sql) => sql`
        update clients set last_used_at = t.at
        from (
          select c.id, u.at
          from json_to_recordset(${json}::json) as u (client_id uuid, node_id uuid, at timestamptz)
          join clients c on c.id = u.client_id and c.node_id = u.node_id
          where c.last_used_at is null or c.last_used_at < u.at
          order by c.id
          for no key update of c
        ) t
        where clients.id = t.id`,
    );
  }
}
