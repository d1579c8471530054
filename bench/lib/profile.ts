import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Breakdown, breakDown, type CpuProfile, type Spent } from './cpu-profile.ts';
import { threadCpuMs } from './process-stats.ts';
import { type ProductOptions, type Server, startProduct } from './product.ts';
import type { Table } from './report.ts';

const SAMPLE_US = 250;
const LINES = 30;

export interface Profiling {
  product: ProductOptions;
  warmUp: number;
  requests: number;
  /** Prepares the requests, and gives what sends a number of them. */
  prepare(product: Server): Promise<(requests: number) => Promise<unknown>>;
}

/** Where the product spends its time on requests once it is warm: its main thread by code, its CPU by thread. */
export async function profileProduct({ product, warmUp, requests, prepare }: Profiling): Promise<Table[]> {
  const profiles = join(product.dataDir, 'profiles');
  mkdirSync(profiles);
  const nodeArgs = ['--cpu-prof', `--cpu-prof-dir=${profiles}`, `--cpu-prof-interval=${SAMPLE_US}`];
  const server = await startProduct({ ...product, nodeArgs });
  const send = await prepare(server);
  await send(warmUp);
  const [fromUs, threadsBefore] = [monotonicUs(), threadCpuMs(server.pid)];
  await send(requests);
  const [toUs, threadsAfter] = [monotonicUs(), threadCpuMs(server.pid)];
  await server.stop();
  const [file] = readdirSync(profiles);
  if (file === undefined) throw new Error('the product wrote no profile');
  const read: CpuProfile = JSON.parse(readFileSync(join(profiles, file), 'utf8'));
  const threads: Spent = new Map(
    [...threadsAfter].map(([name, ms]) => [name, (ms - (threadsBefore.get(name) ?? 0)) * 1000]),
  );
  return [...tables(breakDown(read, fromUs, toUs), requests), threadTable(threads, requests)];
}

/** The clock of the samples: the same in every process of a machine. */
function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

function tables({ total, groups, self, inclusive }: Breakdown, requests: number): Table[] {
  return [
    spentTable('self time by package or folder', groups, total, requests),
    spentTable('self time by function', self, total, requests),
    spentTable('time of a function of the product with what it calls', inclusive, total, requests),
  ];
}

function threadTable(threads: Spent, requests: number): Table {
  const total = [...threads.values()].reduce((sum, us) => sum + us, 0);
  return spentTable('CPU by thread (with what the profiler costs)', threads, total, requests);
}

/** What was spent for each request, and as a share: the greatest first. */
export function spentTable(title: string, spent: Spent, total: number, requests: number): Table {
  return {
    head: [title, 'µs a request', '%'],
    rows: [...spent]
      .sort(([, a], [, b]) => b - a)
      .slice(0, LINES)
      .map(([name, us]) => [name, (us / requests).toFixed(1), ((100 * us) / total).toFixed(1)]),
  };
}
