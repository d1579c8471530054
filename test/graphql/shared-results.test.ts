import fc from 'fast-check';
import { buildSchema, type ExecutionResult, type GraphQLSchema, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { createEngine } from '../../src/api/graphql/execution/engine.ts';
import {
  type EventResults,
  type EventSource,
  once,
  SharedResults,
  sharedOf,
} from '../../src/api/graphql/execution/shared-results.ts';
import { callerOf, type GraphqlContext } from '../../src/api/graphql/kit/resolvers.ts';
import { type LoggedEvent, SlowConsumerError } from '../../src/events/streams/event-log.ts';
import type { EventStream } from '../../src/events/streams/event-streams.ts';
import { Gate, modelStreams, NODE, seqs, settle } from '../support/realtime/model.ts';

/** Answers that count their executions, by event. */
function counted() {
  const answers = new SharedResults();
  const executions = new Map<LoggedEvent<object>, number>();
  const answer = (event: LoggedEvent<object>, key: string) =>
    answers.shared(event, key, async () => {
      executions.set(event, (executions.get(event) ?? 0) + 1);
      return { data: { cursor: String(event.seq) } };
    });
  return { answers, executions, answer };
}

type Counted = ReturnType<typeof counted>;

/** Takes a stream's events and asks for their answers; `done` is what the stream has ended with. */
function answered(stream: EventStream<object>, { answer }: Counted, key = 'key') {
  const results: ExecutionResult[] = [];
  const read = async () => {
    for await (const event of stream) results.push(await answer(event, key));
  };
  const done = read().catch((error: unknown) => error);
  return { results, done, seqs: () => results.map((result) => BigInt(sharedOf(result)?.eventId ?? -1)) };
}

type Step = { write: number } | { joinAfter: number | undefined } | 'let one read through';

/** Fewer events altogether than a subscriber may leave untaken. */
const steps = fc.array(
  fc.oneof(
    fc.record({ write: fc.integer({ min: 1, max: 45 }) }),
    fc.record({ joinAfter: fc.option(fc.nat({ max: 600 }), { nil: undefined }) }),
    fc.constant<Step>('let one read through'),
  ),
  { minLength: 1, maxLength: 20 },
);

describe('subscribers that share results', () => {
  it('D6-10: whenever one joins and from any cursor, it gets each event once and in order; live events are executed once', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const { log, wakeUps, subscribe, streams } = modelStreams();
        const gate = new Gate();
        log.reading = gate.reading;
        const shared = counted();
        const joined: {
          stream: EventStream<object>;
          after: bigint | undefined;
          reader: ReturnType<typeof answered>;
        }[] = [];
        const write = (count: number) => wakeUps.notify(NODE, log.append(NODE, count));
        for (const one of taken) {
          if (one === 'let one read through') await gate.letOne();
          else if ('write' in one) write(one.write);
          else {
            const head = log.head(NODE);
            const given = one.joinAfter === undefined ? undefined : BigInt(one.joinAfter);
            const after = given !== undefined && given > head ? head : given;
            const stream = subscribe({ after });
            joined.push({ stream, after, reader: answered(stream, shared) });
          }
        }
        while (gate.held > 0) await gate.letOne();
        const behind = log.head(NODE);
        write(2);
        await settle();
        while (gate.held > 0) await gate.letOne();
        for (const { stream, after, reader } of joined) {
          const start = after ?? (await stream.started);
          expect(reader.seqs()).toEqual(seqs(Number(start) + 1, Number(behind) + 2));
        }
        const live = [...shared.executions].filter(([event]) => event.seq > behind);
        expect(live.map(([, times]) => times)).toEqual(joined.length === 0 ? [] : [1, 1]);
        streams.stop();
      }),
      { numRuns: 60 },
    );
  });

  it('D6-19: one that is slow gets an error and ends; the others get every event, executed once', async () => {
    const { subscribe, write, writePast } = modelStreams();
    const shared = counted();
    const slow = subscribe();
    const readers = [answered(subscribe(), shared), answered(subscribe(), shared)];
    await settle();
    for (let page = 0; page < 5; page += 1) await writePast(250);
    await expect(slow.next()).rejects.toBeInstanceOf(SlowConsumerError);
    for (const { seqs: seen } of readers) expect(seen()).toEqual(seqs(1, 1_250));
    expect(new Set(shared.executions.values())).toEqual(new Set([1]));
    await write();
    expect(readers[1]?.seqs().at(-1)).toBe(1_251n);
  });

  it('the results kept for slow subscribers are limited; one further behind executes by itself', async () => {
    const answers = new SharedResults();
    let executions = 0;
    const text = 'x'.repeat(100_000);
    const execute = async () => {
      executions += 1;
      return { data: { text } };
    };
    const events = Array.from({ length: 200 }, (_, at) => ({ seq: BigInt(at) }));
    for (const event of events) await answers.shared(event, 'key', execute);
    expect(answers.size).toBe(41);
    for (const event of events.slice(-41)) await answers.shared(event, 'key', execute);
    expect(executions).toBe(200);
    await answers.shared(events[0] ?? {}, 'key', execute);
    expect(executions).toBe(201);
  });
});

describe('the engine', () => {
  const schema = slowSchema();
  const document = parse('subscription { events { id slow } }');
  const principal: GraphqlContext['principal'] = {
    nodeId: 'node',
    tokenClass: 'user',
    tokenUse: 'api',
    permissions: new Set<string>(),
  };
  const { subscribe } = createEngine({ introspection: false, hideSuggestions: false, jit: true });

  it('D6-10: a subscriber that leaves or aborts during a shared execution does not affect the others', async () => {
    const event = { id: '1', slow: Promise.withResolvers<string>() };
    let executions = 0;
    const shown = {
      id: () => {
        executions += 1;
        return '1';
      },
      slow: () => event.slow.promise,
    };
    const contextOf = (correlationId: string) => ({ principal, correlationId, shown, services: {} });
    const abort = new AbortController();
    const streams = await Promise.all(
      ['leaves', 'aborts', 'stays'].map((name) =>
        subscribe({
          schema,
          document,
          contextValue: contextOf(name),
          ...(name === 'aborts' ? { abortSignal: abort.signal } : {}),
        }),
      ),
    );
    const [leaves, aborts, stays] = streams.map(streamOf);
    const nexts = [leaves, aborts, stays].map((stream) => stream?.next());
    for (const next of nexts) next?.catch(() => undefined);
    await settle();
    void leaves?.return(undefined);
    abort.abort(new Error('gone'));
    await settle();
    event.slow.resolve('done');
    expect((await nexts[2])?.value).toMatchObject({ data: { events: { id: '1', slow: 'done' } } });
    expect(executions).toBe(1);
  });

  it('D6-10: a result that is there is sent at once to each subscriber that waits for the next event', async () => {
    let executions = 0;
    const shown = (name: string, isBad = false) => ({
      id: () => {
        executions += 1;
        if (isBad) throw new Error('the field fails');
        return name;
      },
    });
    const sources = [waitingSource(), waitingSource()];
    const streams = await Promise.all(
      sources.map(async (source) =>
        streamOf(await subscribe({ schema, document, contextValue: { principal, shown: source, services: {} } })),
      ),
    );
    const [first, second] = streams as unknown as [EventResults, EventResults];
    const sent: unknown[] = [];
    second.sendNow = (result) => result !== undefined && sent.push(result) > 0;
    const event = shown('1');
    const [next, waiting] = [first.next(), second.next()];
    await settle();
    expect(sources[1]?.sendEventNow?.(event)).toBe(false);
    sources[0]?.give(event);
    const { value } = await next;
    expect(sources[1]?.sendEventNow?.(event)).toBe(true);
    expect(sent).toEqual([value]);
    expect(value).toMatchObject({ data: { events: { id: '1' } } });
    // Without a sender, and with errors, which each subscriber sees with its own correlation id.
    expect(sources[0]?.sendEventNow?.(event)).toBe(false);
    const failing = shown('2', true);
    const failed = first.next();
    sources[0]?.give(failing);
    expect((await failed).value.errors).toHaveLength(1);
    expect(sources[1]?.sendEventNow?.(failing)).toBe(false);
    sources[1]?.give(failing);
    expect((await waiting).value.errors).toHaveLength(1);
    expect([executions, sent.length]).toEqual([2, 1]);
  });

  it('D4-01 D6-10: an event is executed with only those members of its subscriber that are in the key', async () => {
    const seen: { context: GraphqlContext; asked: unknown }[] = [];
    const shown = {
      id: (_args: unknown, context: GraphqlContext) => {
        seen.push({ context, asked: thrownBy(() => callerOf(context)) });
        return '1';
      },
    };
    const services = {};
    const caller = { principal: { ...principal, subject: 'somebody' }, correlationId: 'c', lastEventId: '7' };
    const contextValue = { principal, caller, services, shown, exchange: {}, request: {} };
    const stream = await subscribe({ schema, document, contextValue });
    await streamOf(stream).next();
    expect(seen).toEqual([
      { context: { principal, caller: undefined, services, perOperation: expect.any(Map) }, asked: expect.any(Error) },
    ]);
  });
});

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

function streamOf(result: unknown): AsyncGenerator<ExecutionResult> {
  return result as AsyncGenerator<ExecutionResult>;
}

/** A source whose events come when they are given. */
function waitingSource(): EventSource & { give(event: object): void } {
  const waiting: ((event: IteratorResult<object>) => void)[] = [];
  const source = {
    give: (value: object) => waiting.shift()?.({ done: false, value }),
    next: () => new Promise<IteratorResult<object>>((resolve) => waiting.push(resolve)),
    [Symbol.asyncIterator]: () => source,
  };
  return source;
}

/** A subscription whose one event is the context's, or whose events are those of a source in it. */
function slowSchema(): GraphQLSchema {
  const schema = buildSchema(`
    type Query { nothing: String }
    type Event { id: String slow: String }
    type Subscription { events: Event }`);
  const field = schema.getSubscriptionType()?.getFields().events;
  if (!field) throw new Error('the schema has the field');
  field.subscribe = (_root: unknown, _args: unknown, { shown }: { shown: object }) =>
    Symbol.asyncIterator in shown ? shown : once(shown);
  field.resolve = (event: unknown) => event;
  return schema;
}
