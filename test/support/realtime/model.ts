import { syncBuiltinESMExports } from 'node:module';
import type { TimerOptions } from 'node:timers';
import timers, { setImmediate as nextTurn } from 'node:timers/promises';
import { onTestFinished, vi } from 'vitest';
import { type EventLog, type LoggedEvent, PAGE_BYTES } from '../../../src/events/streams/event-log.ts';
import { type EventStream, EventStreams, type StreamOptions } from '../../../src/events/streams/event-streams.ts';
import { MemoryWakeUps } from '../../../src/events/streams/wake-ups.ts';

export const NODE = 'node';

const PAST_SECONDS = 60;

/** How a model's read takes place: now, later, or not at all. */
export type Reading = <Result>(read: () => Result) => Promise<Result>;

/** The kind of a model's event, so that filters have something to choose from: they go round from 1 to 3. */
export function kindOf({ seq }: Pick<LoggedEvent, 'seq'>): number {
  return Number(seq % 3n) + 1;
}

/** An event log in memory that counts its reads. */
export class ModelLog implements EventLog<object> {
  readonly #nodes = new Map<string, { head: bigint; kept: LoggedEvent<object>[] }>();
  reading: Reading = async (read) => read();
  reads = 0;
  inFlight = 0;
  mostInFlight = 0;

  /** Appends events. */
  append(nodeId: string, count = 1, transaction: Record<string, unknown> = {}): bigint {
    const node = this.#node(nodeId);
    for (let i = 0; i < count; i += 1) {
      node.head += 1n;
      node.kept.push({
        seq: node.head,
        transaction_id: `t${node.head}`,
        status: 1,
        previous_status: null,
        correlation_id: 'c',
        traceparent: null,
        occurred_at: '2026-11-21 10:30:00+00',
        transaction,
      });
    }
    return node.head;
  }

  /** Forgets the events up to `seq`, as their age does. */
  purge(nodeId: string, seq: bigint): void {
    const node = this.#node(nodeId);
    node.kept = node.kept.filter((event) => event.seq > seq);
  }

  kept(nodeId: string): readonly LoggedEvent<object>[] {
    return this.#node(nodeId).kept;
  }

  head(nodeId: string): bigint {
    return this.#node(nodeId).head;
  }

  readEvents(nodeId: string, afterSeq: bigint, limit: number): Promise<LoggedEvent<object>[]> {
    return this.#read(() => {
      const page: LoggedEvent<object>[] = [];
      let bytes = 0;
      for (const event of this.kept(nodeId).filter(({ seq }) => seq > afterSeq)) {
        if (page.length === limit || bytes >= PAGE_BYTES) break;
        bytes += JSON.stringify(event.transaction).length;
        page.push(bytes < PAGE_BYTES ? event : { ...event, isCut: true });
      }
      return page;
    });
  }

  headSeqs(nodeIds: readonly string[]): Promise<Map<string, bigint>> {
    return this.#read(() => new Map(nodeIds.map((nodeId) => [nodeId, this.head(nodeId)])));
  }

  oldestSeq(nodeId: string): Promise<bigint | undefined> {
    return this.#read(() => this.kept(nodeId)[0]?.seq);
  }

  async #read<Result>(read: () => Result): Promise<Result> {
    this.reads += 1;
    this.inFlight += 1;
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
    try {
      return await this.reading(read);
    } finally {
      this.inFlight -= 1;
    }
  }

  #node(nodeId: string) {
    const node = this.#nodes.get(nodeId) ?? { head: 0n, kept: [] };
    this.#nodes.set(nodeId, node);
    return node;
  }
}

/** Node's timers and `Date` in a test, which stand still at 1970 unless they are advanced. */
export class ManualClock {
  constructor() {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: 0 });
    // The fake timers leave out those that return promises.
    const { setTimeout: sleep } = timers;
    const promised = vi
      .spyOn(timers, 'setTimeout')
      // The rests of the turns that the whole process shares (`lib/yielding`) are real: they go on after the test.
      .mockImplementation((ms, value, options) => (ms === 1 ? sleep : fakeSleep)(ms, value, options) as Promise<never>);
    syncBuiltinESMExports();
    onTestFinished(() => {
      promised.mockRestore();
      syncBuiltinESMExports();
      vi.useRealTimers();
    });
  }

  /** How many timers are set. */
  get timers(): number {
    return vi.getTimerCount();
  }

  nowMs(): number {
    return Date.now();
  }

  /** Goes on by `ms` and calls back what is due. */
  advance(ms: number): void {
    vi.advanceTimersByTime(ms);
  }
}

function fakeSleep<Value>(ms?: number, value?: Value, { signal }: TimerOptions = {}): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>();
  const timer = setTimeout(() => resolve(value as Value), ms);
  const abort = () => {
    clearTimeout(timer);
    reject(signal?.reason);
  };
  if (signal?.aborted) abort();
  else signal?.addEventListener('abort', abort, { once: true });
  return promise;
}

/** Lets everything happen that waits for nothing but its turn. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
}

/** A reader that takes whatever it can get. */
export class Reader {
  readonly events: LoggedEvent<object>[] = [];
  readonly done: Promise<unknown>;

  /** `done` resolves with the error that the stream has ended with, or with undefined. */
  constructor(stream: EventStream<object>) {
    this.done = this.#readAll(stream);
  }

  get seqs(): bigint[] {
    return this.events.map((event) => event.seq);
  }

  async #readAll(stream: EventStream<object>): Promise<unknown> {
    try {
      for await (const event of stream) this.events.push(event);
      return undefined;
    } catch (error) {
      return error;
    }
  }
}

/** The numbers from `first` to `last`. */
export function seqs(first: number, last: number): bigint[] {
  return Array.from({ length: last - first + 1 }, (_, i) => BigInt(first + i));
}

/** Streams over a model log and a clock that stands still. */
export function modelStreams() {
  const log = new ModelLog();
  const clock = new ManualClock();
  const wakeUps = new MemoryWakeUps();
  const errors: unknown[] = [];
  const streams = new EventStreams({ log, wakeUps, onError: (error) => errors.push(error) });
  const subscribe = (options: Partial<StreamOptions<object>> = {}) =>
    streams.subscribe({ nodeId: NODE, matches: () => true, ...options });
  /** Appends as a writer does: the log first, then the wake-up. */
  const write = async (count = 1, transaction: Record<string, unknown> = {}) => {
    wakeUps.notify(NODE, log.append(NODE, count, transaction));
    await settle();
  };
  /** The same, and lets so much time pass that nobody waits any more for whoever reads nothing. */
  const writePast = async (count: number, transaction: Record<string, unknown> = {}) => {
    await write(count, transaction);
    for (let second = 0; second < PAST_SECONDS; second += 1) {
      clock.advance(1_000);
      await settle();
    }
  };
  return { log, clock, wakeUps, errors, streams, subscribe, write, writePast };
}

/** Holds reads back until they are let through, one by one, in the order of their coming. */
export class Gate {
  readonly #held: (() => void)[] = [];

  get held(): number {
    return this.#held.length;
  }

  readonly reading: Reading = async (read) => {
    const result = read();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.push(resolve);
    await promise;
    return result;
  };

  async letOne(): Promise<void> {
    this.#held.shift()?.();
    await settle();
  }
}
