import type { Db } from '../../platform/database/database.ts';

interface DatabaseClockParts {
  db: Db;
  /** Whether `nowMs` is the time of tokens: the database is embedded, or a test sets the time. */
  isOwn: boolean;
  nowMs(): number;
}

const MEASURE_EVERY_MS = 1_000;

/**
 * The clock that all processes share, by which tokens are issued and revoked: no token of a process whose own clock is
 * ahead survives its revocation.
 */
export class DatabaseClock {
  readonly #parts: DatabaseClockParts;
  #aheadMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: DatabaseClockParts) {
    this.#parts = parts;
  }

  /** Reads the time of the database, in the transaction of the current context. */
  async read(): Promise<number> {
    const { db, isOwn, nowMs } = this.#parts;
    if (isOwn) return nowMs();
    const [row] = await db
      .unscoped('the time is of no node')
      .raw((sql) => sql<{ ms: string }>`select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as ms`);
    return Number(row?.ms);
  }

  /**
   * Returns the time as last measured, in milliseconds since the epoch. It is ahead of the database by no more than the
   * own clock has jumped since.
   */
  nowMs(): number {
    return this.#parts.nowMs() + this.#aheadMs;
  }

  /** Starts measuring. Resolves after the first measurement. */
  async start(): Promise<void> {
    if (this.#parts.isOwn) return;
    await this.#measure();
    this.#timer = setInterval(() => {
      // While the database is down, the last measurement holds.
      this.#measure().catch(() => undefined);
    }, MEASURE_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The database read its clock before the result arrived: it is ahead by no more than this. */
  async #measure(): Promise<void> {
    const databaseMs = await this.read();
    this.#aheadMs = databaseMs - this.#parts.nowMs();
  }
}
