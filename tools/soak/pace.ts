import { setTimeout as delay } from 'node:timers/promises';
import type { Kind } from './traffic.ts';

const TICK_MS = 25;
/** Beyond that many at once nothing is asked: the instance is behind, and its pace is what is told. */
const MOST_AT_ONCE = 64;

/** Asks `rate` times a second, of kinds by their weight, until `signal` aborts and all have been answered. */
export async function paced(kinds: readonly Kind[], rate: number, signal: AbortSignal): Promise<void> {
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0);
  const asking = new Set<Promise<void>>();
  let due = 0;
  for (let last = performance.now(); !signal.aborted; ) {
    await delay(TICK_MS);
    const now = performance.now();
    due += ((now - last) / 1_000) * rate;
    last = now;
    for (; due >= 1; due -= 1) {
      if (asking.size >= MOST_AT_ONCE) continue;
      const asked = picked(kinds, total)
        .ask()
        .finally(() => asking.delete(asked));
      asking.add(asked);
    }
  }
  await Promise.all(asking);
}

function picked(kinds: readonly Kind[], total: number): Kind {
  let left = Math.random() * total;
  for (const kind of kinds) {
    left -= kind.weight;
    if (left < 0) return kind;
  }
  throw new Error('there are kinds');
}
