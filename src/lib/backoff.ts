import { setTimeout } from 'node:timers/promises';

/** Returns how long to wait after so many failures in a row: `minMs` (100 ms), doubling up to `maxMs` (5 s). */
export function backoffMs(failures: number, { minMs = 100, maxMs = 5_000 } = {}): number {
  return Math.min(minMs * 2 ** Math.max(0, failures - 1), maxMs);
}

/** Resolves after `ms` milliseconds, or at once when `signal` aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined);
}
