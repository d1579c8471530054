import type { Db } from '../db.ts';

interface DatabaseClockParts {
  db: Db;
  /** Whether it is this process's own: the database is embedded, or a test makes the time. */
  isOwn: boolean;
  nowMs(): number;
}

const MEASURE_EVERY_MS = 1_000;

/**
 * The clock that all replicas have in common: by it tokens are issued and ended, so that none of a replica whose own is
 * ahead outlives what ends it.
 */
export class DatabaseClock {
  readonly #parts: DatabaseClockParts;
  #aheadMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: DatabaseClockParts) {
    this.#parts = parts;
  }

  /** Asks the database, in the transaction of the current context. */
  async read(): Promise<number> {
    const { db, isOwn, nowMs } = this.#parts;
    if (isOwn) return nowMs();
    const [row] = await db
      .unscoped('the time is of no node')
      .raw((sql) => sql<{ ms: string }>`select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as ms`);
    return Number(row?.ms);
  }

  /** The time by what was measured last: later than the database's by no more than the own clock has since jumped. */
  nowMs(): number {
    return this.#parts.nowMs() + this.#aheadMs;
  }

  /** Measures from now on. Resolves when it has once. */
  async start(): Promise<void> {
    if (this.#parts.isOwn) return;
    await this.#measure();
    this.#timer = setInterval(() => {
      // Where the database is away, the last one holds.
      this.#measure().catch(() => undefined);
    }, MEASURE_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The answer was made before it came: at most this far is the database ahead. */
  async #measure(): Promise<void> {
    const databaseMs = await this.read();
    this.#aheadMs = databaseMs - this.#parts.nowMs();
  }
}
