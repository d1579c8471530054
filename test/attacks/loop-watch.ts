import { appendFileSync } from 'node:fs';

/**
 * Preloaded into a process: writes each stretch of CPU time that the event loop did not interrupt, in milliseconds, to
 * the file that LOOP_WATCH names. CPU time, unlike the clock, leaves out what the machine spent on other processes.
 */
const EVERY_MS = 5;
const TOLD_MS = 12;
const { LOOP_WATCH: path } = process.env;

function usedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

let before = usedMs();
setInterval(() => {
  const now = usedMs();
  if (path && now - before > TOLD_MS) appendFileSync(path, `${Date.now()} ${(now - before).toFixed(1)}\n`);
  before = usedMs();
}, EVERY_MS).unref();
import { PerformanceObserver } from 'node:perf_hooks';
new PerformanceObserver((list) => {
  for (const e of list.getEntries()) if (path && e.duration > 8) appendFileSync(path, `${Date.now()} 0 gc ${e.duration.toFixed(1)}\n`);
}).observe({ entryTypes: ['gc'] });
