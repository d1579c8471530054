import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { LoggedEvent } from '../../src/events/streams/event-log.ts';
import { type EventStream, EventStreams } from '../../src/events/streams/event-streams.ts';
import { MemoryWakeUps } from '../../src/events/streams/wake-ups.ts';
import { kindOf, ManualClock, ModelLog, Reader, settle } from '../support/realtime/model.ts';

const NODES = ['node-a', 'node-b'];
const FOREVER_MS = 5_000;

type Step =
  | { kind: 'append'; node: string; count: number; isWoken: boolean }
  | { kind: 'subscribe'; node: string; after: number | undefined; ofKind: number | undefined; takes: number }
  | { kind: 'leave'; which: number }
  | { kind: 'read' }
  | { kind: 'fail' }
  | { kind: 'time'; ms: number };

const node = fc.constantFrom(...NODES);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('append'),
      node,
      count: fc.integer({ min: 1, max: 20 }),
      isWoken: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('subscribe'),
      node,
      // A fraction of the head: every place in the log, both ends included.
      after: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
      ofKind: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
      // Of so many events all but one are sent while it waits for the next; with 0 none is.
      takes: fc.nat(3),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('read') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave'), which: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('time'), ms: fc.constantFrom(100, 1_000) }) },
);

interface Subscriber {
  stream: EventStream<object>;
  reader: Reader;
  node: string;
  matches: (event: LoggedEvent<object>) => boolean;
  /** Where it begins, once that is known: where it asked for, or at the head. */
  start: bigint | undefined;
  hasLeft: boolean;
}

/** Everything that a step can touch. The scheduler decides when a read of the log takes place and when it returns. */
class Scenario {
  readonly clock = new ManualClock();
  readonly log = new ModelLog();
  readonly wakeUps = new MemoryWakeUps();
  readonly streams: EventStreams<object>;
  readonly subscribers: Subscriber[] = [];
  readonly scheduler: fc.Scheduler;
  #failures = 0;

  constructor(scheduler: fc.Scheduler, backlog: number) {
    this.scheduler = scheduler;
    for (const name of NODES) this.log.append(name, backlog);
    this.log.reading = async (read) => {
      const fails = this.#failures > 0;
      if (fails) this.#failures -= 1;
      await scheduler.schedule(Promise.resolve());
      if (fails) throw new Error('the database is away');
      const result = read();
      await scheduler.schedule(Promise.resolve());
      return result;
    };
    this.streams = new EventStreams({
      log: this.log,
      wakeUps: this.wakeUps,
      onError: () => undefined,
    });
  }

  async take(action: Step): Promise<void> {
    switch (action.kind) {
      case 'append': {
        const head = this.log.append(action.node, action.count);
        if (action.isWoken) this.wakeUps.notify(action.node, head);
        break;
      }
      case 'subscribe':
        this.#subscribe(action);
        break;
      case 'leave': {
        const subscriber = this.subscribers[action.which];
        if (subscriber) subscriber.hasLeft = true;
        await subscriber?.stream.return();
        break;
      }
      case 'read':
        if (this.scheduler.count() > 0) await this.scheduler.waitOne();
        break;
      case 'fail':
        this.#failures += 1;
        break;
      case 'time':
        this.clock.advance(action.ms);
        break;
      default:
        action satisfies never;
    }
    await settle();
  }

  /** Lets as much time pass as anybody can need. */
  async rest(): Promise<void> {
    for (let passedMs = 0; passedMs < FOREVER_MS; passedMs += 500) {
      while (this.scheduler.count() > 0) {
        await this.scheduler.waitOne();
        await settle();
      }
      this.clock.advance(500);
      await settle();
    }
  }

  #subscribe({ node: name, after: place, ofKind, takes }: Step & { kind: 'subscribe' }): void {
    const head = this.log.head(name);
    const after = place === undefined ? undefined : BigInt(Math.round(Number(head) * place));
    const matches = (event: LoggedEvent<object>) => ofKind === undefined || kindOf(event) === ofKind;
    const stream = this.streams.subscribe({ nodeId: name, after, matches });
    const reader = new Reader(stream);
    if (takes > 0) {
      stream.sendEventNow = (event) => {
        expect(stream.isOwn(event)).toBe(false);
        const isTaken = event.seq % BigInt(takes) > 0n;
        if (isTaken) reader.events.push(event);
        return isTaken;
      };
    }
    const subscriber: Subscriber = { stream, reader, node: name, matches, start: undefined, hasLeft: false };
    this.subscribers.push(subscriber);
    stream.started.then(
      (start) => {
        subscriber.start = start;
        if (after === undefined) expect(start).toBeGreaterThanOrEqual(head);
        else expect(start).toBe(after);
      },
      () => undefined,
    );
  }

  /** Without a start it has left before it began: then nothing. */
  wantedBy({ node: name, start, matches }: Subscriber): bigint[] {
    if (start === undefined) return [];
    const wanted = this.log.kept(name).filter((event) => event.seq > start && matches(event));
    return wanted.map((event) => event.seq);
  }
}

it('D6-10 D6-14: each subscriber gets each matching event once and in order, in any schedule of events and faults', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.constantFrom(0, 3, 499, 500, 1_100),
      fc.array(step, { minLength: 5, maxLength: 60, size: 'max' }),
      async (scheduler, backlog, steps) => {
        const scenario = new Scenario(scheduler, backlog);
        for (const action of steps) await scenario.take(action as Step);
        await scenario.rest();
        for (const subscriber of scenario.subscribers) {
          const { reader, start, hasLeft } = subscriber;
          const wanted = scenario.wantedBy(subscriber);
          expect(reader.seqs).toEqual(hasLeft ? wanted.slice(0, reader.seqs.length) : wanted);
          expect(start === undefined && !hasLeft).toBe(false);
        }
        scenario.streams.stop();
        expect(scenario.streams.load).toEqual({ streams: 0, tailers: 0 });
        expect(scenario.clock.timers).toBe(0);
      },
    ),
    { numRuns: 200 },
  );
});
