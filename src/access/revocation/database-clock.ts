import type { Db } from '../../platform/database/database.ts';
import { readTime } from '../../platform/database/open-database.ts';

/**
 * The database's clock, which all processes share. Tokens are issued and revoked by it, so that no token from a process
 * whose own clock is ahead survives its revocation.
 */
export class DatabaseClock {
  readonly #deps;
  #aheadMs = 0;

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
    return this.#deps.isOwn ? this.#deps.nowMs() : readTime(this.#deps.db);
  }

  /**
   * Returns the time as last noted, in ms since 1970. It is ahead of the database by at most what the process's own
   * clock has jumped since then.
   */
  nowMs(): number {
    return this.#deps.nowMs() + this.#aheadMs;
  }

  /**
   * Notes the time that the database has just told, as it does for each check of its health; while it is down, the last
   * one stays in use. The database read its clock before the result arrived, so the difference is never too large.
   */
  note(databaseMs: number): void {
    if (!this.#deps.isOwn) this.#aheadMs = databaseMs - this.#deps.nowMs();
  }
}
