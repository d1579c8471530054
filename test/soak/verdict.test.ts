import { expect, it } from 'vitest';
import { Tally } from '../../tools/soak/caller.ts';
import {
  cursorFault,
  endFault,
  faultsOf,
  type MemorySample,
  memoryTrend,
  type SoakFacts,
  type StreamEnd,
} from '../../tools/soak/verdict.rules.ts';

const flat = (count: number, residentMb = 200): MemorySample[] =>
  Array.from({ length: count }, () => ({ residentMb, heapMb: 50 }));

const GOOD: SoakFacts = {
  paced: { planned: 100, answered: 97 },
  silent: [],
  left: { lag: 0, outbox: 0 },
  unexpected: [],
  events: [],
  logged: 70,
  told: [{ subscriber: 'WebSocket 1', count: 70 }],
  made: [{ what: 'users', acknowledged: 40, rows: 40 }],
  audit: [{ kind: 'health', answered: 9, records: 9, requests: 9 }],
  errorLines: [],
  memory: flat(40),
};

it('a soak without deviations has no fault', () => {
  expect(faultsOf(GOOD)).toEqual([]);
});

it.each<[string, Partial<SoakFacts>, string]>([
  ['an unexpected answer', { unexpected: [{ kind: 'health', count: 2, example: '503' }] }, '2 unexpected answers'],
  ['an event out of order', { events: [{ subscriber: 'SSE 1', fault: '4 came after 2' }] }, 'SSE 1: 4 came after 2'],
  ['a lost event', { told: [{ subscriber: 'SSE 1', count: 69 }] }, 'SSE 1 was told 69 of 70 changes'],
  ['an extra event', { logged: 69 }, 'WebSocket 1 was told 70 of 69 changes'],
  ['a lost user', { made: [{ what: 'users', acknowledged: 40, rows: 39 }] }, '39 users are there, of 40 acknowledged'],
  ['an extra rule', { made: [{ what: 'rules', acknowledged: 3, rows: 4 }] }, '4 rules are there, of 3 acknowledged'],
  ['a missing audit record', { audit: [{ kind: 'mcp', answered: 9, records: 8, requests: 8 }] }, '8 audit records'],
  ['a duplicate audit record', { audit: [{ kind: 'mcp', answered: 9, records: 10, requests: 9 }] }, '10 audit records'],
  [
    'a lost and a duplicate record',
    { audit: [{ kind: 'mcp', answered: 9, records: 9, requests: 8 }] },
    'of 8 requests',
  ],
  ['a pace below the plan', { paced: { planned: 100, answered: 89 } }, '89 of 100 requests'],
  ['a kind of request that was never answered', { silent: ['mcp'] }, 'nothing of mcp was answered'],
  ['a queue that is not empty', { left: { lag: 0, outbox: 3 } }, 'outbox: 3 are left'],
  ['an error in the log', { errorLines: ['{"level":"error"}'] }, 'the log has an error'],
  ['growing memory', { memory: [...flat(30), ...flat(10, 230)] }, 'memory grew by 12.0 %: 250 MB'],
  ['too few samples', { memory: flat(7) }, '7 samples of memory are too few'],
])('%s is a fault', (_name, facts, says) => {
  expect(faultsOf({ ...GOOD, ...facts })).toEqual([expect.stringContaining(says)]);
});

it('memory growth compares the medians of the second and the last quarter, and may be a tenth', () => {
  const climbing = [...flat(10, 100), ...flat(10, 150), ...flat(10, 300), ...flat(10, 169)];
  expect(memoryTrend(climbing)).toEqual({ secondMb: 200, lastMb: 219, growth: expect.closeTo(0.095) });
  expect(faultsOf({ ...GOOD, memory: climbing })).toEqual([]);
  // One that collects its garbage seldom has peaks, which are none of the medians.
  const peaks = flat(40).map((sample, index) => (index % 3 === 0 ? { ...sample, heapMb: 400 } : sample));
  expect(memoryTrend(peaks)?.growth).toBe(0);
  expect(memoryTrend([...flat(20, 300), ...flat(20, 100)])?.growth).toBeLessThan(0);
});

it.each([
  [0n, '1', undefined],
  [9n, '10', undefined],
  [2n, '4', '4 came after 2'],
  [4n, '4', '4 came again, or late, after 4'],
  [4n, '', '"" is no cursor'],
])('after the cursor %s, the cursor %j has the fault: %s', (before, cursor, expected) => {
  expect(cursorFault(before, cursor)).toBe(expected);
});

it.each<[string, StreamEnd]>([
  ['a stop, on a socket', { by: 'close', code: 1012 }],
  ['a stop, on an event stream', { by: 'end' }],
  ['an expired token, at the connection', { by: 'close', code: 4401 }],
  ['an expired token, later', { by: 'close', code: 4403 }],
  ['reading too slowly', { by: 'errors', codes: ['SLOW_CONSUMER'] }],
])('a subscriber is expected to reconnect after %s', (_name, end) => {
  expect(endFault(end)).toBeUndefined();
});

it.each<[StreamEnd, string]>([
  ...[1000, 1001, 1006, 1009, 1011, 4400, 4408, 4500].map((code): [StreamEnd, string] => [
    { by: 'close', code },
    `the socket was closed with ${code}`,
  ]),
  [{ by: 'complete' }, 'the stream was complete'],
  [{ by: 'errors', codes: ['INTERNAL_SERVER_ERROR'] }, 'the stream ended with the errors ["INTERNAL_SERVER_ERROR"]'],
  [{ by: 'errors', codes: ['UNAUTHENTICATED'] }, 'the stream ended with the errors ["UNAUTHENTICATED"]'],
  [{ by: 'errors', codes: ['SLOW_CONSUMER', undefined] }, 'the stream ended with the errors ["SLOW_CONSUMER",null]'],
  [{ by: 'errors', codes: [] }, 'the stream ended with the errors []'],
  [{ by: 'failure', reason: 'ECONNRESET' }, 'the stream failed: ECONNRESET'],
])('the stream end %j is unexpected', (end, fault) => {
  expect(endFault(end)).toBe(fault);
});

it('a tally counts answers and faults, and keeps the first example', () => {
  const tally = new Tally();
  tally.answered('health', 2);
  tally.answered('health', 3, 'first');
  tally.failed('health', 'second');
  expect(tally.kinds.get('health')).toMatchObject({ answered: 2, unexpected: 2, example: 'first' });
  expect(tally.kinds.get('health')?.durations.percentile(99)).toBeCloseTo(3_000, -1);
});
