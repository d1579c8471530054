import { setTimeout } from 'node:timers/promises';

/**
 * Returns the pause after so many consecutive failures, in milliseconds: `minMs` (100) after the first, doubled by each
 * further one, at most `maxMs` (5,000).
 */
export function backoffMs(failures: number, { minMs = 100, maxMs = 5_000 } = {}): number {
  return Math.min(minMs * 2 ** Math.max(0, failures - 1), maxMs);
}

/** Resolves after `ms` milliseconds, or at once when `signal` aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined);
}
