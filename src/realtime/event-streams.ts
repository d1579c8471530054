import { type Clock, systemClock } from './clock.ts';
import type { EventLog } from './event-log.ts';
import { EventStream, type SubscribeOptions } from './event-stream.ts';
import { PatientLog } from './patient-log.ts';
import { StreamStoppedError } from './stream-errors.ts';
import { EventTailers } from './tailer.ts';
import type { WakeUps } from './wake-ups.ts';

const POLL_MS = 1_000;

export interface EventStreamsOptions {
  log: EventLog;
  wakeUps: WakeUps;
  /** Told once of each outage of the log, with its first error. */
  onError: (error: unknown) => void;
  clock?: Clock | undefined;
  /** How often a node's log is read without a wake-up; each second unless told otherwise. */
  pollMs?: number | undefined;
}

/** The fan-out of a process: whatever reaches a subscriber comes from the log, read once for each node. */
export class EventStreams {
  readonly #clock: Clock;
  readonly #log: PatientLog;
  readonly #tailers: EventTailers;
  readonly #streams = new Set<EventStream>();
  #isStopped = false;

  constructor({ log, wakeUps, onError, clock = systemClock, pollMs = POLL_MS }: EventStreamsOptions) {
    this.#clock = clock;
    this.#log = new PatientLog({ log, clock, onError });
    this.#tailers = new EventTailers({ log: this.#log, wakeUps, clock, pollMs });
  }

  /** Without `after`, whatever is committed once the stream's `started` has resolved is delivered. */
  subscribe(options: SubscribeOptions): EventStream {
    const stream = new EventStream(options, {
      log: this.#log,
      tailers: this.#tailers,
      clock: this.#clock,
      onEnd: (ended) => this.#streams.delete(ended),
    });
    if (!stream.isEnded) this.#streams.add(stream);
    if (this.#isStopped) stream.end(new StreamStoppedError());
    return stream;
  }

  /** What is held now: it returns to nothing when the last subscriber has gone. */
  get load(): { streams: number; tailers: number } {
    return { streams: this.#streams.size, tailers: this.#tailers.size };
  }

  /** Ends every stream with a StreamStoppedError. */
  stop(): void {
    this.#isStopped = true;
    for (const stream of this.#streams) stream.end(new StreamStoppedError());
    this.#tailers.stop();
  }
}
