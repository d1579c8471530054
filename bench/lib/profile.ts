import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Breakdown, breakDown, type CpuProfile, type Spent } from './cpu-profile.ts';
import { threadCpuMs } from './process-stats.ts';
import { type ProductOptions, type Server, startProduct } from './product.ts';
import type { Table } from './report.ts';
import { emptyFolder } from './world.ts';

const SAMPLE_US = 250;
const LINES = 30;

interface Profiling<Started> {
  warmUp: number;
  requests: number;
  /** Prepares the requests, and gives what sends a number of them. */
  prepare(started: Started): Promise<(requests: number) => Promise<unknown>>;
}

interface ServerProfiling<Started> extends Profiling<Started> {
  title: string;
  start(): Promise<Started>;
}

/** Where the product spends its time on requests, as of `profileServer`. */
export function profileProduct({
  product,
  prepare,
  ...profiling
}: Profiling<Server> & { product: ProductOptions }): Promise<Table[]> {
  return profileServer({
    title: 'Portcullis',
    start: async () => ({ server: await startProduct(product) }),
    prepare: ({ server }) => prepare(server),
    ...profiling,
  });
}

/** Where a server spends its time on requests once it is warm: its main thread by code, its CPU by thread. */
export async function profileServer<Started extends { server: Server }>({
  title,
  warmUp,
  requests,
  start,
  prepare,
}: ServerProfiling<Started>): Promise<Table[]> {
  await using folder = await emptyFolder();
  const started = await withProfiler(folder.path, start);
  const { server } = started;
  const send = await prepare(started);
  await send(warmUp);
  const [fromUs, threadsBefore] = [monotonicUs(), threadCpuMs(server.pid)];
  await send(requests);
  const [toUs, threadsAfter] = [monotonicUs(), threadCpuMs(server.pid)];
  await server.stop();
  const [file] = readdirSync(folder.path);
  if (file === undefined) throw new Error(`${title} wrote no profile`);
  const read: CpuProfile = JSON.parse(readFileSync(join(folder.path, file), 'utf8'));
  const threads: Spent = new Map(
    [...threadsAfter].map(([name, ms]) => [name, (ms - (threadsBefore.get(name) ?? 0)) * 1000]),
  );
  return [...tables(title, breakDown(read, fromUs, toUs), requests), threadTable(title, threads, requests)];
}

/** Every server inherits the environment of this process, and Node takes the options of its profiler from there. */
async function withProfiler<Started>(folder: string, start: () => Promise<Started>): Promise<Started> {
  const { NODE_OPTIONS: before = '' } = process.env;
  const options = ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${SAMPLE_US}`];
  process.env.NODE_OPTIONS = `${before} ${options.join(' ')}`;
  try {
    return await start();
  } finally {
    process.env.NODE_OPTIONS = before;
  }
}

/** The clock of the samples: the same in every process of a machine. */
function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

function tables(title: string, { total, groups, self, inclusive }: Breakdown, requests: number): Table[] {
  const ofProduct = spentTable(`${title}: time of a function with what it calls`, inclusive, total, requests);
  return [
    spentTable(`${title}: self time by package or folder`, groups, total, requests),
    spentTable(`${title}: self time by function`, self, total, requests),
    ...(inclusive.size === 0 ? [] : [ofProduct]),
  ];
}

function threadTable(title: string, threads: Spent, requests: number): Table {
  const total = [...threads.values()].reduce((sum, us) => sum + us, 0);
  return spentTable(`${title}: CPU by thread, with the profiler's own`, threads, total, requests);
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
