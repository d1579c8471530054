import type { ExecutionResult } from 'graphql';
import { type Clock, sleep, systemClock } from '../../../events/streams/clock.ts';
import { OVERLOAD_MAX_MS } from '../../../events/streams/event-log.ts';
import { SlowConsumerError } from '../../../events/streams/stream-errors.ts';
import { backoffMs } from '../../../lib/backoff.ts';
import { Semaphore } from '../../../lib/semaphore.ts';
import { runCooperatively } from '../../../lib/yielding.ts';
import { isOverloaded, type SharedResults } from './shared-results.ts';

/** How many events that are not shared are executed at once for each tenant. */
const OWN_AT_ONCE = 4;
const PAUSE_MAX_MS = 1_000;
const NEVER = new AbortController().signal;

/** Where the events of a subscription come from. */
export interface EventSource extends AsyncIterable<unknown> {
  /** Aborted when the subscription ends. */
  readonly signal?: AbortSignal | undefined;
  /** Checks whether an event was made only for this subscriber, such as a replayed one. */
  isOwn?(event: unknown): boolean;
}

/**
 * Executes the events of subscriptions. Each tenant has a few executions at once of events that are not shared. An
 * execution that is refused because the tenant's connections are in use is repeated after a pause: a subscriber gets
 * the event, or ends.
 */
export class EventExecutions {
  readonly #results: SharedResults;
  readonly #clock: Clock;
  readonly #own = new Semaphore({
    permits: Number.POSITIVE_INFINITY,
    share: OWN_AT_ONCE,
    maxWaiting: Number.POSITIVE_INFINITY,
  });
  /** The tenants whose last execution was refused. */
  readonly #overloaded = new Set<string>();

  constructor(results: SharedResults, clock: Clock = systemClock) {
    this.#results = results;
    this.#clock = clock;
  }

  /**
   * Returns the result for an event: a shared one, or the one that `execute` gives.
   * @throws SlowConsumerError when the tenant's connections have been in use for 10 s; the reason of the subscriber's
   * signal.
   */
  async answer(
    event: object,
    {
      nodeId,
      key,
      source,
    }: {
      nodeId: string;
      /** The key of the results that it shares with other subscriptions. */
      key: string;
      source: EventSource;
    },
    execute: () => Promise<ExecutionResult>,
  ): Promise<ExecutionResult> {
    const { signal = NEVER } = source;
    const worker = { key: nodeId };
    const givesUpAtMs = this.#clock.nowMs() + OVERLOAD_MAX_MS;
    const giveUpInTime = () => {
      if (this.#clock.nowMs() >= givesUpAtMs) throw new SlowConsumerError();
    };
    const own = async () => {
      // Those who have waited as long end together.
      if (this.#overloaded.has(nodeId)) giveUpInTime();
      return runCooperatively(() => this.#results.own(event, execute()), worker);
    };
    const shared = () => runCooperatively(() => this.#results.shared(event, key, execute), worker);
    for (let failures = 1; ; failures += 1) {
      const result = await (source.isOwn?.(event) ? this.#own.run(nodeId, own, signal) : shared());
      if (!isOverloaded(result)) {
        this.#overloaded.delete(nodeId);
        return result;
      }
      this.#overloaded.add(nodeId);
      giveUpInTime();
      await sleep(this.#clock, backoffMs(failures, { maxMs: PAUSE_MAX_MS }), signal);
    }
  }
}
