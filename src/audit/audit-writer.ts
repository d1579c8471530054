import type { AuditSpool } from './spool.ts';

/** A process whose database answers has written a record this long after its request ended. */
export const AUDIT_DELAY_MS = 1_000;

export type AuditWriterOptions = {
  spool: AuditSpool;
  /** Writes the lines, all or none; must bear the same line twice, by its (time, id). */
  insert: (lines: string[]) => Promise<void>;
  /** Told once per outage, with its first error. */
  onError: (error: unknown) => void;
  intervalMs?: number;
  batchSize?: number;
  /** How often what dead processes left is looked for. */
  adoptIntervalMs?: number;
  minBackoffMs?: number;
  maxBackoffMs?: number;
};

/**
 * Moves lines from the spool to their store: at most `intervalMs` after they came, or at once by a full batch. As long as
 * the spool is full it looks as often for room.
 */
export class AuditWriter {
  readonly #options: Required<AuditWriterOptions>;
  readonly #abort = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #adoptTimer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #failures = 0;

  constructor(options: AuditWriterOptions) {
    const defaults = {
      intervalMs: 200,
      batchSize: 500,
      adoptIntervalMs: 30_000,
      minBackoffMs: 100,
      maxBackoffMs: 5_000,
    };
    this.#options = { ...defaults, ...options };
  }

  /** Whether the store refused the last batch. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Begins with what is in the spool already. */
  start(): void {
    const { spool, adoptIntervalMs } = this.#options;
    spool.onAppend(() => this.#appended());
    this.#adoptTimer = setInterval(() => this.#adopt(), adoptIntervalMs);
    this.#run();
  }

  /** Resolves once what is in the spool has been written, or could not be. */
  async flush(): Promise<void> {
    await this.#running;
    if (this.#running === undefined) this.#run();
    await this.#running;
  }

  /**
   * Ends the loop with a last attempt to write everything. True when the spool is empty within `deadlineMs`; what is
   * left stays in the spool.
   */
  async stop(deadlineMs: number): Promise<boolean> {
    const { spool } = this.#options;
    clearInterval(this.#adoptTimer);
    this.#clearTimer();
    spool.onAppend(() => {});
    const deadline = Promise.withResolvers<void>();
    const timer = setTimeout(deadline.resolve, deadlineMs);
    await Promise.race([this.#lastDrain(), deadline.promise]);
    clearTimeout(timer);
    this.#abort.abort();
    this.#clearTimer();
    return spool.pendingBytes === 0;
  }

  async #lastDrain(): Promise<void> {
    await this.#running;
    this.#clearTimer();
    await this.#drain();
  }

  #appended(): void {
    // During a run or a backoff the line is taken by the next run.
    if (this.#running !== undefined || this.#failures > 0) return;
    if (this.#options.spool.pendingLines >= this.#options.batchSize) this.#run();
    else if (this.#timer === undefined) this.#runIn(this.#options.intervalMs);
  }

  #adopt(): void {
    try {
      if (this.#options.spool.adopt() > 0 && this.#running === undefined && this.#failures === 0) this.#run();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #run(): void {
    this.#clearTimer();
    this.#running = this.#drain().then(() => {
      this.#running = undefined;
      const { spool, intervalMs, minBackoffMs, maxBackoffMs } = this.#options;
      if (this.#abort.signal.aborted) return;
      if (this.#failures > 0) this.#runIn(Math.min(maxBackoffMs, minBackoffMs * 2 ** (this.#failures - 1)));
      else if (spool.pendingBytes > 0 || spool.isFull) this.#runIn(intervalMs);
    });
  }

  async #drain(): Promise<void> {
    const { spool, insert, batchSize, onError } = this.#options;
    try {
      await spool.drain(insert, { batchSize, signal: this.#abort.signal });
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      if (this.#failures === 1) onError(error);
    }
  }

  #runIn(delayMs: number): void {
    this.#timer = setTimeout(() => this.#run(), delayMs);
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
