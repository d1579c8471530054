import { backoffMs } from '../../lib/backoff.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import { type Clock, sleep } from './clock.ts';
import type { EventLog, LoggedEvent } from './event-log.ts';

/** Events in a page of a replay or of a tailer's read. */
export const PAGE_EVENTS = 500;

const BACKFILLS_AT_ONCE = 8;
const RETRY_MAX_MS = 1_000;

interface RetryingLogParts {
  log: EventLog;
  clock: Clock;
  /** Called once for each outage, with its first error. */
  onError: (error: unknown) => void;
}

/**
 * Reads the event log, and tries again until a read succeeds. Each method throws its signal's reason once that is aborted,
 * also where the read has succeeded meanwhile.
 */
export class RetryingLog {
  readonly #parts: RetryingLogParts;
  readonly #backfills = new Semaphore({ permits: BACKFILLS_AT_ONCE });
  #isOut = false;

  constructor(parts: RetryingLogParts) {
    this.#parts = parts;
  }

  /** Reads the next page for a tailer. */
  readEvents(nodeId: string, afterSeq: bigint, signal: AbortSignal): Promise<LoggedEvent[]> {
    return this.#persist(() => this.#parts.log.readEvents(nodeId, afterSeq, PAGE_EVENTS), signal);
  }

  /**
   * Reads the next page of a replay. Replays share a few permits, each for the read of one page: a subscriber that does
   * not take what it was given keeps no other one waiting.
   */
  backfill(nodeId: string, afterSeq: bigint, signal: AbortSignal): Promise<LoggedEvent[]> {
    return this.#backfills.run(undefined, () => this.readEvents(nodeId, afterSeq, signal), signal);
  }

  headSeq(nodeId: string, signal: AbortSignal): Promise<bigint> {
    return this.#persist(() => this.#parts.log.headSeq(nodeId), signal);
  }

  oldestKept(nodeId: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#persist(() => this.#parts.log.oldestKept(nodeId), signal);
  }

  async #persist<Result>(read: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted();
    for (let failures = 1; ; failures += 1) {
      try {
        const result = await read();
        this.#isOut = false;
        signal.throwIfAborted();
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (!this.#isOut) this.#parts.onError(error);
        this.#isOut = true;
        await sleep(this.#parts.clock, backoffMs(failures, { maxMs: RETRY_MAX_MS }), signal);
      }
    }
  }
}
