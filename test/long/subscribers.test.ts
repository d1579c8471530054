import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startOnRealServers } from '../support/harness.ts';
import { ClientProcess } from '../support/long/client-process.ts';
import { logged, notify, registered } from '../support/realtime/live.ts';
import { describeReal } from '../support/services/real.ts';
import { type Running, startInstance } from '../support/start/process.ts';

/** For many more, half of them over WebSockets, a process of 1 GiB has no room (docs/operations/capacity.md). */
const SUBSCRIBERS = 6_000;
const PROCESSES = 4;
/** Those who make the service compile and allocate what it does for all. */
const FIRST = 200;
const MOST_BYTES_EACH = 60 * 1024;
/** More than a ping, and more than the pings of one turn. */
const HELD_MS = 30_000;
const PATIENCE = { timeout: 120_000, interval: 250 };
/** Collects all garbage on a signal, so that memory is what is held. */
const COLLECTING = ['--expose-gc', '--import', "data:text/javascript,process.on('SIGUSR2',()=>{gc();gc()})"];

interface Told {
  open: number;
  got: Record<string, number>;
  gotAtMs: number[];
}

/** What all processes of clients tell together. */
async function askAll(all: readonly ClientProcess<Told>[], command: string): Promise<Told> {
  const told = await Promise.all(all.map((clients) => clients.tell(command)));
  const got: Record<string, number> = {};
  for (const one of told)
    for (const [cursors, count] of Object.entries(one.got)) got[cursors] = (got[cursors] ?? 0) + count;
  return {
    open: told.reduce((sum, { open }) => sum + open, 0),
    got,
    gotAtMs: told.flatMap(({ gotAtMs }) => gotAtMs).sort((one, other) => one - other),
  };
}

describeReal(['postgres', 'redis', 'kafka'], 'many who wait', () => {
  const p = beforeTests(startOnRealServers);
  let instance: Running;
  let spool: string;

  beforeAll(async () => {
    spool = await mkdtemp(join(tmpdir(), 'portcullis-subscribers-'));
    instance = await startInstance({ ...p.env, AUDIT_SPOOL_DIR: spool }, COLLECTING);
  });
  afterAll(async () => {
    await instance[Symbol.asyncDispose]();
    await rm(spool, { recursive: true, force: true });
  });

  /** The processor time of the instance so far, in hundredths of a second. */
  async function ticks(): Promise<number> {
    const stat = await readFile(`/proc/${instance.pid}/stat`, 'utf8');
    const [user = '0', system = '0'] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13);
    return Number(user) + Number(system);
  }

  /** What it holds once it has nothing to do. */
  async function residentBytes(): Promise<number> {
    for (let last = -1_000, now = await ticks(); now - last > 20; now = await ticks()) {
      last = now;
      await delay(1_000);
    }
    process.kill(instance.pid, 'SIGUSR2');
    await delay(2_000);
    const status = await readFile(`/proc/${instance.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1_024;
  }

  it('D6-10: 6,000 idle subscribers use little memory, and each of them receives one event once', async () => {
    const token = await p.clientToken();
    const [first = '', second = '', third = ''] = await registered(p, 3);
    await notify(p, first, 2);
    await vi.waitFor(async () => expect(await logged(p)).toEqual(['1']), PATIENCE);
    await using stack = new AsyncDisposableStack();
    const all = Array.from({ length: PROCESSES }, () =>
      stack.use(new ClientProcess<Told>('subscriber-clients.ts', instance.baseUrl, token, '1')),
    );
    const [some] = all;
    expect(await some?.tell(`open ${FIRST}`)).toMatchObject({ open: FIRST });
    const before = await residentBytes();
    const openedAt = performance.now();
    await askAll(all, `open ${(SUBSCRIBERS - FIRST) / PROCESSES}`);
    const openSeconds = Math.round((performance.now() - openedAt) / 1_000);
    await delay(HELD_MS);
    const resident = await residentBytes();
    expect(await askAll(all, 'count')).toMatchObject({ open: SUBSCRIBERS, got: { '': SUBSCRIBERS } });

    const latencies: number[][] = [];
    const processorMicros: number[] = [];
    for (const [id, got] of [
      [second, '2'],
      [third, '2,3'],
    ] as const) {
      const ticksBefore = await ticks();
      const sentAtMs = Date.now();
      await notify(p, id, 2);
      await vi.waitFor(async () => expect((await askAll(all, 'count')).got).toEqual({ [got]: SUBSCRIBERS }), PATIENCE);
      processorMicros.push(Math.round((((await ticks()) - ticksBefore) * 10_000) / SUBSCRIBERS));
      latencies.push((await askAll(all, 'tell')).gotAtMs.map((atMs) => atMs - sentAtMs));
    }
    const afterwards = await residentBytes();
    expect((await askAll(all, 'count')).open).toBe(SUBSCRIBERS);

    const bytesEach = Math.round((resident - before) / (SUBSCRIBERS - FIRST));
    const at = (fraction: number) => latencies.map((sorted) => sorted[Math.floor(sorted.length * fraction)]);
    const report = {
      subscribers: SUBSCRIBERS,
      open_seconds: openSeconds,
      mebibytes: [before, resident, afterwards].map((bytes) => Math.round(bytes / 1_048_576)),
      bytes_each: bytesEach,
      processor_micros_each: processorMicros,
      p50_ms: at(0.5),
      p99_ms: at(0.99),
    };
    process.stdout.write(`${JSON.stringify(report)}\n`);
    expect(bytesEach).toBeLessThan(MOST_BYTES_EACH);
  });
});
