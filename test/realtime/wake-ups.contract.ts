import { afterEach, beforeEach, expect, it } from 'vitest';
import type { WakeUps } from '../../src/events/streams/wake-ups.ts';

/** What all wake-ups promise. `open` gives two ends: what one notifies, both hear; in one process both are the same. */
export function wakeUpsContract(open: () => Promise<[WakeUps, WakeUps]>): void {
  let near: WakeUps;
  let far: WakeUps;
  let heard: { near: string[]; far: string[] };
  let hushFar: () => void;

  beforeEach(async () => {
    [near, far] = await open();
    heard = { near: [], far: [] };
    near.listen((nodeId, seq) => heard.near.push(`${nodeId} ${seq}`));
    hushFar = far.listen((nodeId, seq) => heard.far.push(`${nodeId} ${seq}`));
  });
  afterEach(async () => {
    await near.stop();
    await far.stop();
  });

  it('D6-10: a notification reaches the listeners of every process', async () => {
    near.notify('a', 1n);
    await expect.poll(() => heard).toEqual({ near: ['a 1'], far: ['a 1'] });
    far.notify('b', 9_007_199_254_740_993n);
    await expect.poll(() => heard.near).toEqual(['a 1', 'b 9007199254740993']);
  });

  it('D6-10: of several notifications together, each node gets its highest number once', async () => {
    for (const seq of [9n, 10n, 8n]) near.notify('a', seq);
    near.notify('b', 1n);
    await expect.poll(() => heard.far.toSorted()).toEqual(['a 10', 'b 1']);
  });

  it('a listener that was removed receives nothing more', async () => {
    hushFar();
    near.notify('a', 1n);
    await expect.poll(() => heard.near).toEqual(['a 1']);
    expect(heard.far).toEqual([]);
  });

  it('after stop() nothing is received and nothing throws', async () => {
    near.notify('a', 1n);
    await near.stop();
    near.notify('a', 2n);
    await near.stop();
    expect(heard.near).toEqual([]);
  });
}
