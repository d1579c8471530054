import type { Db } from '../db.ts';

interface ExpiredRowsParts {
  db: Db;
  nowMs(): number;
  onError(error: unknown): void;
}

const EVERY_MS = 3_600_000;

/** Deletes, once an hour, what was kept of tokens that have ended by themselves since. */
export class ExpiredRows {
  readonly #parts: ExpiredRowsParts;
  #timer: NodeJS.Timeout | undefined;
  #pruning: Promise<void> = Promise.resolve();

  constructor(parts: ExpiredRowsParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#pruning = this.prune().catch((error: unknown) => this.#parts.onError(error));
    }, EVERY_MS);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#pruning;
  }

  /** Deletes what has ended by now. */
  async prune(): Promise<void> {
    const { db, nowMs } = this.#parts;
    const now = new Date(nowMs()).toISOString();
    const door = db.unscoped('tokens end for every node');
    await door.run((k) => k.deleteFrom('spent_refresh_tokens').where('expires_at', '<=', now));
    await door.run((k) => k.deleteFrom('revoked_tokens').where('expires_at', '<=', now));
  }
}
