import { setTimeout } from 'node:timers/promises';

const FIRST_MS = 100;
const LAST_MS = 5_000;

/** The pause before the attempt that follows `failures` failed ones: 100 ms, doubling up to 5 s. */
export function backoffMs(failures: number): number {
  return Math.min(FIRST_MS * 2 ** Math.max(0, failures - 1), LAST_MS);
}

/** Resolves after `ms`, or at once when `signal` aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await setTimeout(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
