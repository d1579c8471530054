import { appendFileSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';

/**
 * Preloaded into a process: writes each stretch of CPU time that the event loop did not interrupt, and each collection of
 * garbage, to the file that LOOP_WATCH names, as lines of a kind, an end in milliseconds since 1970, and milliseconds.
 * CPU time, unlike the clock, leaves out what the machine spent on other processes.
 */
const EVERY_MS = 5;
const TOLD_MS = 12;
const { LOOP_WATCH: path } = process.env;

function usedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function tell(kind: string, endedAtMs: number, ms: number): void {
  if (path && ms > TOLD_MS) appendFileSync(path, `${kind} ${endedAtMs} ${ms.toFixed(1)}\n`);
}

let before = usedMs();
setInterval(() => {
  tell('held', Date.now(), usedMs() - before);
  before = usedMs();
}, EVERY_MS).unref();
new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) {
    tell('collected', performance.timeOrigin + startTime + duration, duration);
  }
}).observe({ entryTypes: ['gc'] });
