import { type Clock, sleep } from './clock.ts';
import type { EventLog } from './event-log.ts';
import type { LoggedEvent } from './logged-event.ts';
import { Slots } from './slots.ts';

/** Events in a page of a replay or of a tailer's read. */
export const PAGE_EVENTS = 500;

const BACKFILLS_AT_ONCE = 8;
const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 1_000;

interface PatientLogParts {
  log: EventLog;
  clock: Clock;
  /** Told once of each outage, with its first error. */
  onError: (error: unknown) => void;
}

/**
 * The log whose reads are tried again until they succeed. Each throws its signal's reason once that is aborted, also
 * where the read has succeeded meanwhile.
 */
export class PatientLog {
  readonly #parts: PatientLogParts;
  readonly #backfills = new Slots(BACKFILLS_AT_ONCE);
  #isOut = false;

  constructor(parts: PatientLogParts) {
    this.#parts = parts;
  }

  /** The next page of a tailer. */
  readEvents(nodeId: string, afterSeq: bigint, signal: AbortSignal): Promise<LoggedEvent[]> {
    return this.#persist(() => this.#parts.log.readEvents(nodeId, afterSeq, PAGE_EVENTS), signal);
  }

  /**
   * The next page of a replay. Replays share a few slots, each for the read of a page alone: a reader that does not
   * take what it was given keeps no other one waiting.
   */
  backfill(nodeId: string, afterSeq: bigint, signal: AbortSignal): Promise<LoggedEvent[]> {
    return this.#backfills.run(() => this.readEvents(nodeId, afterSeq, signal), signal);
  }

  headSeq(nodeId: string, signal: AbortSignal): Promise<bigint> {
    return this.#persist(() => this.#parts.log.headSeq(nodeId), signal);
  }

  oldestKept(nodeId: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#persist(() => this.#parts.log.oldestKept(nodeId), signal);
  }

  async #persist<Result>(read: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted();
    for (let delayMs = RETRY_MIN_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MAX_MS)) {
      try {
        const result = await read();
        this.#isOut = false;
        signal.throwIfAborted();
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (!this.#isOut) this.#parts.onError(error);
        this.#isOut = true;
        await sleep(this.#parts.clock, delayMs, signal);
      }
    }
  }
}
