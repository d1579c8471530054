import { parseArgs } from 'node:util';
import { print, type Table } from './lib/report.ts';
import { median } from './lib/statistics.ts';
import { emptyFolder, onEachStores, type Stores, seedWorld, storesNamed, type World } from './lib/world.ts';
import { type Start, startOnce } from './start/measure.ts';
import { packageCounts } from './start/packages.ts';

interface Effort {
  starts: number;
  idleMs: number;
}

const EFFORT: Effort = { starts: 5, idleMs: 10_000 };
const AIMS = { cold: '6 s', warm: '2 s', embedded: '300 MB', servers: '180 MB' };

/** Measures starts and idle memory on each of the stores: medians. */
export async function measureStart(kinds: readonly Stores[], effort: Effort = EFFORT): Promise<Table> {
  const rows: string[][] = [];
  const add = (title: string, starts: readonly Start[], aim: string, memoryAim: string) => {
    const of = (member: keyof Start) => median(starts.map((start) => start[member]));
    const seconds = (ms: number) => (ms / 1000).toFixed(2);
    const memory = [of('residentMb'), of('anonymousMb')].map((mb) => mb.toFixed(0));
    rows.push([title, seconds(of('healthMs')), seconds(of('pageMs')), aim, ...memory, memoryAim]);
  };
  await onEachStores(kinds, async (world, title) => {
    if (world.stores === 'embedded') add(`${title}, first start`, await coldStarts(effort), AIMS.cold, AIMS.embedded);
    else await seedWorld(world);
    add(`${title}, later start`, await warmStarts(world, effort), AIMS.warm, AIMS[world.stores]);
  });
  const head = ['start', 'health, s', 'token and page, s', 'aim', 'resident, MB', 'of it anonymous, MB', 'aim'];
  return { head, rows };
}

/** Each in an empty folder, with an empty cache of compiled code, as after `npm ci` in a fresh clone. */
async function coldStarts({ starts, idleMs }: Effort): Promise<Start[]> {
  const results: Start[] = [];
  while (results.length < starts) {
    await using cache = await emptyFolder();
    await using data = await emptyFolder();
    results.push(await startOnce({ dataDir: data.path, compileCache: cache.path, idleMs }));
  }
  return results;
}

/** Each on the folder of one before. */
async function warmStarts({ dataDir, servers }: World, { starts, idleMs }: Effort): Promise<Start[]> {
  await using cache = await emptyFolder();
  const options = { dataDir, servers, compileCache: cache.path };
  await startOnce({ ...options, idleMs: 0 });
  const results: Start[] = [];
  while (results.length < starts) results.push(await startOnce({ ...options, idleMs }));
  return results;
}

/** The packages that `npm ci` installs. */
export function packagesTable(): Table {
  const { production, all } = packageCounts();
  return {
    head: ['packages installed', 'production', 'with development'],
    rows: [['npm ci', `${production}`, `${all}`]],
  };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      starts: { type: 'string', default: `${EFFORT.starts}` },
      'idle-ms': { type: 'string', default: `${EFFORT.idleMs}` },
    },
  });
  const effort = { starts: Number(values.starts), idleMs: Number(values['idle-ms']) };
  print(await measureStart(storesNamed(values.stores), effort));
  print(packagesTable());
}
