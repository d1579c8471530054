import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { clientToken, readDemoFile, startProduct } from '../lib/product.ts';
import type { Table } from '../lib/report.ts';
import { seedWorld, type World } from '../lib/world.ts';
import { type Breakdown, breakDown, type CpuProfile, type Spent } from './cpu-profile.ts';
import type { Effort } from './measure.ts';
import { runRound } from './rounds.ts';

const SAMPLE_US = 250;
const LINES = 30;

/** Where the product's main thread spends its time on GET /v1/accounts?limit=10, once it is warm. */
export async function profile(world: World, { requests, warmUp }: Effort): Promise<Table[]> {
  await seedWorld(world);
  const profiles = join(world.dataDir, 'profiles');
  mkdirSync(profiles);
  const nodeArgs = ['--cpu-prof', `--cpu-prof-dir=${profiles}`, `--cpu-prof-interval=${SAMPLE_US}`];
  const product = await startProduct({ ...world, nodeArgs });
  const token = await clientToken(product.url, readDemoFile(world.dataDir));
  await runRound({ server: product, token }, warmUp);
  const fromUs = monotonicUs();
  await runRound({ server: product, token }, requests);
  const toUs = monotonicUs();
  await product.stop();
  const [file] = readdirSync(profiles);
  if (file === undefined) throw new Error('the product wrote no profile');
  const read: CpuProfile = JSON.parse(readFileSync(join(profiles, file), 'utf8'));
  return tables(breakDown(read, fromUs, toUs), requests);
}

/** The clock of the samples: the same in every process of a machine. */
function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

function tables({ total, groups, self, inclusive }: Breakdown, requests: number): Table[] {
  const table = (title: string, spent: Spent): Table => ({
    head: [title, 'µs a request', '%'],
    rows: [...spent]
      .sort(([, a], [, b]) => b - a)
      .slice(0, LINES)
      .map(([name, us]) => [name, (us / requests).toFixed(1), ((100 * us) / total).toFixed(1)]),
  });
  return [
    table('self time by package or folder', groups),
    table('self time by function', self),
    table('time of a function of the product with what it calls', inclusive),
  ];
}
