import { expect, it } from 'vitest';
import { WorkLoop } from '../../src/lib/work-loop.ts';

const HOUR_MS = 3_600_000;

function loopOf(turn: (signal: AbortSignal, turns: number) => Promise<boolean>) {
  const failures: unknown[] = [];
  let turns = 0;
  const loop = new WorkLoop({
    iterate: (signal) => {
      turns += 1;
      return turn(signal, turns);
    },
    onFailure: (error) => failures.push(error),
    pollMs: HOUR_MS,
  });
  return { loop, failures, turns: () => turns };
}

it('iterates while there is more work, then waits for a notification', async () => {
  const { loop, turns } = loopOf(async (_signal, turn) => turn < 3);
  loop.start();
  await expect.poll(turns).toBe(3);
  loop.notify();
  await expect.poll(turns).toBe(4);
  await loop.stop();
  expect(turns()).toBe(4);
});

it('a notification during an iteration that finds nothing causes another iteration', async () => {
  const { loop, turns } = loopOf(async (_signal, turn) => {
    if (turn === 1) loop.notify();
    return false;
  });
  loop.start();
  await expect.poll(turns).toBe(2);
  await loop.stop();
});

it('continues after failures, and reports only the first of consecutive failures', async () => {
  const { loop, failures, turns } = loopOf(async (_signal, turn) => {
    if (turn === 1 || turn === 2 || turn === 4) throw new Error(`turn ${turn}`);
    return turn < 5;
  });
  loop.start();
  await expect.poll(turns).toBe(5);
  await loop.stop();
  expect(failures).toEqual([new Error('turn 1'), new Error('turn 4')]);
});

it('stops after the running iteration, whose signal is aborted', async () => {
  const begun = Promise.withResolvers<void>();
  let wasAborted = false;
  const { loop, turns } = loopOf(async (signal) => {
    begun.resolve();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    wasAborted = signal.aborted;
    return true;
  });
  loop.start();
  await begun.promise;
  await loop.stop();
  expect({ wasAborted, turns: turns() }).toEqual({ wasAborted: true, turns: 1 });
});
