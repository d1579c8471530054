import { beforeEach, expect, it, vi } from 'vitest';
import { every } from '../../src/lib/shared-ticks.ts';

// In a process of its own: what other files have left running would count.

beforeEach(() => {
  vi.useFakeTimers();
  return () => void vi.useRealTimers();
});

it('all intervals of a process share one timer, and those that end together are served by one wake-up', () => {
  const calls: string[] = [];
  const wakeUps = vi.fn(() => calls.push('|'));
  const stops = [every(250, wakeUps), every(500, () => calls.push('half')), every(1_000, () => calls.push('whole'))];
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(4_000);
  expect(wakeUps).toHaveBeenCalledTimes(16);
  const perWakeUp = calls
    .join(' ')
    .split('|')
    .map((part) => part.trim());
  const served = (what: string) => perWakeUp.filter((part) => part === what).length;
  expect([served('half'), served('half whole'), served('whole')]).toEqual([4, 4, 0]);
  for (const stop of stops) stop();
  expect(vi.getTimerCount()).toBe(0);
});

it('an interval that was stopped is not called again, the others are, and one begins after all have ended', () => {
  const [first, second] = [vi.fn(), vi.fn()];
  const stopFirst = every(250, first);
  const stopSecond = every(250, second);
  vi.advanceTimersByTime(250);
  stopFirst();
  vi.advanceTimersByTime(250);
  expect([first, second].map(({ mock }) => mock.calls.length)).toEqual([1, 2]);
  stopSecond();
  stopFirst();
  const stopThird = every(250, first);
  vi.advanceTimersByTime(250);
  expect(first).toHaveBeenCalledTimes(2);
  stopThird();
});
