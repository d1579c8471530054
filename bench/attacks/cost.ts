import { setTimeout as delay } from 'node:timers/promises';
import { cpuMs } from '../lib/process-stats.ts';
import { median } from '../lib/statistics.ts';

/** The kernel counts in ticks of 10 ms. */
const SAMPLE_MS = 50;
const SETTLED_MS = 10;
const MAX_SAMPLES = 20;

/** Milliseconds of CPU that a server takes for a request, audit record included: the median of several, one after another. */
export async function costOf(pid: number, send: () => Promise<unknown>, rounds: number): Promise<number> {
  const costs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const before = cpuMs(pid);
    await send();
    await untilSettled(pid);
    costs.push(cpuMs(pid) - before);
  }
  return median(costs);
}

/** What follows the answer, such as masking its audit record, belongs to the request. */
async function untilSettled(pid: number): Promise<void> {
  let before = cpuMs(pid);
  for (let sample = 0; sample < MAX_SAMPLES; sample += 1) {
    await delay(SAMPLE_MS);
    const now = cpuMs(pid);
    if (now - before < SETTLED_MS) return;
    before = now;
  }
}
