import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BusUnavailableError } from '../../src/events/bus/event-bus.ts';
import type { Log } from '../../src/lib/log.ts';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { isServerAway, Refusal } from '../../src/platform/errors.ts';
import { outageLog } from '../../src/platform/telemetry/process-log.ts';

const MINUTE_MS = 60_000;

let told: [level: string, message: string, fields: Record<string, unknown>][] = [];
let log: Log;
beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  const at = (level: string) => (fields: object, message: string) => void told.push([level, message, { ...fields }]);
  log = outageLog({ debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') });
});
afterEach(() => void vi.useRealTimers());

const lost = (message = 'connect ECONNREFUSED') => Object.assign(new Error(message), { store: 'database' });

it('D8-16: the first failure is logged as it is, and names the store', () => {
  const err = lost();
  log.error({ correlation_id: 'a', err }, 'request failed');
  expect(told).toEqual([['error', 'request failed', { correlation_id: 'a', err, store: 'database' }]]);
});

it('D8-16: what fails next is counted by its line, and told once a minute until nothing fails', () => {
  for (let request = 0; request < 1_000; request += 1) log.error({ err: lost() }, 'request failed');
  log.warn({ err: new Refusal('internal_error', { cause: lost() }) }, 'operation failed');
  expect(told).toHaveLength(1);
  vi.advanceTimersByTime(MINUTE_MS);
  const summary = 'PostgreSQL: failures in the last minute, counted by log line';
  const failed = { 'request failed': 999, 'operation failed': 1 };
  expect(told.slice(1)).toEqual([['warn', summary, { store: 'database', failed }]]);
  log.error({ err: lost() }, 'request failed');
  vi.advanceTimersByTime(MINUTE_MS);
  expect(told.slice(2)).toEqual([['warn', summary, { store: 'database', failed: { 'request failed': 1 } }]]);
  vi.advanceTimersByTime(10 * MINUTE_MS);
  expect(told).toHaveLength(3);
  log.error({ err: lost() }, 'request failed');
  expect(told).toHaveLength(4);
  expect(told[3]?.[1]).toBe('request failed');
});

it('D8-16: each store has its own outage, and other errors and lines pass', () => {
  log.warn({ err: new CacheUnavailableError() }, 'one');
  log.warn({ error: new BusUnavailableError('none') }, 'two');
  log.warn({ store: 'cache', error: new Error('three') }, 'three');
  log.error({ err: new Error('a bug') }, 'four');
  log.error({ err: new Error('a bug') }, 'four');
  log.info({ store: undefined }, 'five');
  expect(told.map(([, message]) => message)).toEqual(['one', 'two', 'four', 'four', 'five']);
  // A line of JSON has no members of an error.
  expect(told[1]?.[2]).toEqual({ store: 'bus', error: 'BusUnavailableError: none' });
});

it.each([
  [{ code: 'ECONNREFUSED' }, true],
  [{ code: 'EAI_AGAIN' }, true],
  [{ code: '57P01' }, true],
  [{ code: '08006' }, true],
  [{ code: '53300' }, true],
  [{ code: '25006' }, true],
  [{ message: 'Connection terminated unexpectedly' }, true],
  [{ message: 'timeout exceeded when trying to connect' }, true],
  [{ code: 'ERR_INVALID_ARG_TYPE' }, false],
  [{ code: '23505' }, false],
  [{ code: '53100' }, false],
  [{ code: '57014' }, false],
  [{ message: 'a bug' }, false],
])('D8-16: an error of the database with %o says that its server is away: %s', (members, isAway) => {
  expect(isServerAway(Object.assign(new Error(), members))).toBe(isAway);
});
