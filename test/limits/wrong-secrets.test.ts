import { expect, it } from 'vitest';
import { WrongSecrets } from '../../src/access/limits/client-limits.ts';

const SECOND = 1_000;

function noted() {
  let nowMs = 1_000_000;
  const secrets = new WrongSecrets(() => nowMs);
  return {
    at(seconds: number, client: string, isWrong: boolean) {
      nowMs = 1_000_000 + seconds * SECOND;
      secrets.note(client, isWrong);
    },
    async longest(seconds: number) {
      nowMs = 1_000_000 + seconds * SECOND;
      const { values } = await secrets.longest.get();
      return values[0]?.value;
    },
  };
}

it('D8-17: the time is that between the first and the last wrong secret of one client', async () => {
  const { at, longest } = noted();
  expect(await longest(0)).toBe(0);
  for (const seconds of [0, 200, 500, 790]) at(seconds, 'one', true);
  at(795, 'other', true);
  expect(await longest(800)).toBe(790);
});

it('D8-17: right secrets between wrong ones hide nothing, but at the end they end it', async () => {
  const { at, longest } = noted();
  for (let seconds = 0; seconds <= 900; seconds += 100) {
    at(seconds, 'one', true);
    at(seconds + 50, 'one', false);
  }
  expect(await longest(951)).toBe(0);
  at(1_000, 'one', true);
  expect(await longest(1_001)).toBe(1_000);
});

it('D8-17: five minutes without a wrong secret end a run', async () => {
  const { at, longest } = noted();
  at(0, 'one', true);
  at(300, 'one', true);
  at(601, 'one', true);
  expect(await longest(602)).toBe(0);
  at(700, 'one', true);
  expect(await longest(1_000)).toBe(99);
  expect(await longest(1_001)).toBe(0);
});

it('D8-17: right secrets alone are no run', async () => {
  const { at, longest } = noted();
  at(0, 'one', false);
  at(100, 'one', true);
  expect(await longest(101)).toBe(0);
});
