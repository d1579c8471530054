import { readFileSync } from 'node:fs';

/** Linux tells here for how long work has waited for a CPU, in µs (pressure stall information). */
const PRESSURE = '/proc/pressure/cpu';

/**
 * Begins to watch the machine. The function that it returns gives the share of the time since then in which work has
 * waited for a CPU; 0 where Linux does not tell.
 */
export function watchCpu(): () => number {
  const [beganAtMs, before] = [performance.now(), waitedMs()];
  return () => (waitedMs() - before) / (performance.now() - beganAtMs);
}

function waitedMs(): number {
  try {
    return Number(/^some .*total=(\d+)/m.exec(readFileSync(PRESSURE, 'utf8'))?.[1] ?? 0) / 1_000;
  } catch {
    return 0;
  }
}
