import { type ExecutionResult, GraphQLError } from 'graphql';
import { beforeEach, expect, it } from 'vitest';
import {
  EventExecutions,
  type EventSource,
  SharedResults,
  sharedOf,
} from '../../src/api/graphql/execution/shared-results.ts';
import { SlowConsumerError } from '../../src/events/streams/event-log.ts';
import { gatewayTimeout, serviceUnavailable } from '../../src/platform/errors.ts';
import { ManualClock, NODE, settle } from '../support/realtime/model.ts';

let clock: ManualClock;
let executions: EventExecutions;
beforeEach(() => {
  clock = new ManualClock();
  executions = new EventExecutions(new SharedResults());
});

/** A subscriber that replays, or one that is live. */
function source(isReplaying: boolean, left = new AbortController()): EventSource {
  return { signal: left.signal, isOwn: () => isReplaying, [Symbol.asyncIterator]: () => raise() };
}

function raise(): never {
  throw new Error('nothing is read here');
}

const replaying = (nodeId = NODE) => ({ nodeId, key: 'key', source: source(true) });

/** A result of which a field was refused, as graphql-js has it. */
function refused(refusal = serviceUnavailable()): ExecutionResult {
  const error = new GraphQLError(refusal.message, { originalError: refusal, path: ['transactionUpdates', 'e7'] });
  return { data: { transactionUpdates: null }, errors: [error] };
}

/** An execution that is refused so often before it succeeds. */
function refusing(times: number, refusal?: Error) {
  const execution = { runs: 0 };
  const execute = async (): Promise<ExecutionResult> => {
    execution.runs += 1;
    return execution.runs <= times ? refused(refusal as never) : { data: { transactionUpdates: execution.runs } };
  };
  return { execution, execute };
}

/** Lets so much time pass, a tenth of a second after the other. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 100) {
    clock.advance(100);
    await settle();
  }
}

it('D6-24: at most four replayed events of one tenant are executed at once, and those of another tenant in parallel', async () => {
  const running: Record<string, number> = {};
  const most: Record<string, number> = {};
  const held: (() => void)[] = [];
  const answers = ['one', 'other'].flatMap((nodeId) =>
    Array.from({ length: 30 }, () =>
      executions.answer({}, replaying(nodeId), async () => {
        running[nodeId] = (running[nodeId] ?? 0) + 1;
        most[nodeId] = Math.max(most[nodeId] ?? 0, running[nodeId]);
        await new Promise<void>((resolve) => held.push(resolve));
        running[nodeId] -= 1;
        return { data: {} };
      }),
    ),
  );
  await settle();
  expect(running).toEqual({ one: 4, other: 4 });
  while (held.length > 0) {
    held.shift()?.();
    await settle();
  }
  await Promise.all(answers);
  expect(most).toEqual({ one: 4, other: 4 });
});

it.each([
  ['a refused connection', serviceUnavailable()],
  ['a statement timeout', gatewayTimeout()],
])(
  'D6-24: a replayed event with %s is executed again after a pause, and the subscriber gets it',
  async (_what, refusal) => {
    const { execution, execute } = refusing(2, refusal);
    const answer = executions.answer({ seq: 7n }, replaying(), execute);
    await settle();
    expect(execution.runs).toBe(1);
    await pass(100);
    expect(execution.runs).toBe(2);
    await pass(200);
    expect(await answer).toMatchObject({ data: { transactionUpdates: 3 } });
    expect(sharedOf(await answer)?.eventId).toBe('7');
  },
);

it('D6-24: if no connection is available, each replay ends as slow_consumer after 10 s, queued ones too', async () => {
  let runs = 0;
  const answers = Array.from({ length: 20 }, () =>
    executions
      .answer({}, replaying(), async () => {
        runs += 1;
        return refused();
      })
      .catch((error: unknown) => error),
  );
  const ended: unknown[] = [];
  for (const answer of answers) void answer.then((error) => ended.push(error));
  await pass(9_900);
  expect(ended).toEqual([]);
  const runsSoFar = runs;
  await pass(1_100);
  expect(await Promise.all(answers)).toEqual(answers.map(() => expect.any(SlowConsumerError)));
  expect(runsSoFar).toBeLessThan(20 * 20);
  expect(clock.timers).toBe(0);
});

it('D6-24: an event shared by two live subscribers is refused to neither, and executed once for both', async () => {
  const { execution, execute } = refusing(1);
  const event = { seq: 1n };
  // It does not end before both wait for it: on a busy machine the second one joins later.
  const held = Promise.withResolvers<void>();
  const executeLate = () => held.promise.then(execute);
  const live = () => executions.answer(event, { nodeId: NODE, key: 'key', source: source(false) }, executeLate);
  const answers = [live(), live()];
  await settle();
  held.resolve();
  await settle();
  expect(execution.runs).toBe(1);
  await pass(100);
  const [one, other] = await Promise.all(answers);
  expect(one).toBe(other);
  expect(one).toMatchObject({ data: { transactionUpdates: 2 } });
  expect(execution.runs).toBe(2);
});

it('D6-24: a replay whose subscriber leaves while it is queued or paused is not executed', async () => {
  const left = new AbortController();
  const leaving = { nodeId: NODE, key: 'key', source: source(true, left) };
  const pausing = refusing(Number.POSITIVE_INFINITY);
  const pause = executions.answer({}, leaving, pausing.execute);
  await settle();
  const held = Promise.withResolvers<ExecutionResult>();
  const others = Array.from({ length: 4 }, () => executions.answer({}, replaying(), () => held.promise));
  const waiting = refusing(0);
  const wait = executions.answer({}, leaving, waiting.execute);
  await settle();
  left.abort(new Error('gone'));
  await expect(pause).rejects.toThrow('gone');
  await expect(wait).rejects.toThrow('gone');
  held.resolve({ data: {} });
  await Promise.all(others);
  expect([pausing.execution.runs, waiting.execution.runs]).toEqual([1, 0]);
  expect(clock.timers).toBe(0);
});

it('D6-24: an overload error has no stack trace, and neither has the field error that it causes', () => {
  for (const overload of [serviceUnavailable(), gatewayTimeout()]) {
    expect(overload.stack).toBe(`Refusal: ${overload.message}`);
    expect(new GraphQLError('refused', { originalError: overload }).stack).toBe(overload.stack);
  }
  expect(new Error('another').stack).toContain('event-executions.test.ts');
});
