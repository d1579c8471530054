import type { Db } from '../../platform/database/database.ts';

const MEASURE_EVERY_MS = 1_000;

/**
 * The database's clock, which all processes share. Tokens are issued and revoked by it, so that no token from a process
 * whose own clock is ahead survives its revocation.
 */
export class DatabaseClock {
  readonly #deps;
  #aheadMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: {
    db: Db;
    /** Whether `nowMs` gives the time for tokens, because the database is embedded or a test sets the time. */
    isOwn: boolean;
    nowMs(): number;
  }) {
    this.#deps = deps;
  }

  /** Reads the database's time, in ms since 1970, within the transaction of the current context. */
  async read(): Promise<number> {
    if (this.#deps.isOwn) return this.#deps.nowMs();
    const [row] = await this.#deps.db
      .unscoped('clock query')
      .raw((sql) => sql<{ ms: string }>`select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as ms`);
    return Number(row?.ms);
  }

  /**
   * Returns the time as last measured, in ms since 1970. It is ahead of the database by at most what the process's own
   * clock has jumped since then.
   */
  nowMs(): number {
    return this.#deps.nowMs() + this.#aheadMs;
  }

  /** Starts to measure the database's time every second. Resolves after the first measurement. */
  async start(): Promise<void> {
    if (this.#deps.isOwn) return;
    await this.#measure();
    this.#timer = setInterval(() => {
      // While the database is down, the last measurement stays in use.
      this.#measure().catch(() => undefined);
    }, MEASURE_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Measures the difference between the two clocks. The database read its clock before the result arrived, so the
   * difference is never too large.
   */
  async #measure(): Promise<void> {
    this.#aheadMs = (await this.read()) - this.#deps.nowMs();
  }
}
