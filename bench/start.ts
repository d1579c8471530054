import { parseArgs } from 'node:util';
import { print, type Table } from './lib/report.ts';
import { median } from './lib/statistics.ts';
import { emptyFolder, onEachStores, type Stores, seedWorld, storesNamed, type World } from './lib/world.ts';
import { type Start, startBare, startOnce } from './start/measure.ts';
import { packageCounts } from './start/packages.ts';

interface Effort {
  starts: number;
  idleMs: number;
}

const EFFORT: Effort = { starts: 5, idleMs: 10_000 };
/** Of times those to a bare script on PGlite, in the same run. */
const AIMS = { cold: 0.8, warm: 1.6, first: 300, embedded: 240, servers: 180 };

/** Starts of one kind. */
interface Starts {
  title: string;
  starts: readonly Start[];
  /** The highest ratio to a bare script's time that is aimed at; undefined where no script is started. */
  aim?: number;
  /** Megabytes. */
  memoryAim: number;
}

/** Starts the product on each of the stores again and again. */
export async function measureStarts(kinds: readonly Stores[], effort: Effort): Promise<Starts[]> {
  const measured: Starts[] = [];
  await onEachStores(kinds, async (world, title) => {
    if (world.stores === 'embedded') {
      const first = { title: `${title}, first start`, aim: AIMS.cold, memoryAim: AIMS.first };
      measured.push({ ...first, starts: await coldStarts(effort) });
    } else await seedWorld(world);
    const later = { title: `${title}, later start`, memoryAim: AIMS[world.stores] };
    const aim = world.stores === 'embedded' ? { aim: AIMS.warm } : {};
    measured.push({ ...later, ...aim, starts: await warmStarts(world, effort) });
  });
  return measured;
}

/** Measures starts and idle memory on each of the stores: medians. */
export async function measureStart(kinds: readonly Stores[], effort: Effort = EFFORT): Promise<Table> {
  const rows = (await measureStarts(kinds, effort)).map(({ title, starts, aim, memoryAim }) => {
    const of = (member: keyof Start) => median(starts.map((start) => start[member] ?? 0));
    const seconds = (ms: number) => (ms / 1000).toFixed(2);
    const memory = [of('residentMb'), of('anonymousMb'), memoryAim].map((mb) => mb.toFixed(0));
    const bare = starts.flatMap(({ bareMs }) => bareMs ?? []);
    const ratio = median(starts.map(({ pageMs, bareMs = Number.NaN }) => pageMs / bareMs)).toFixed(2);
    const beside = bare.length > 0 ? [seconds(median(bare)), ratio, `${aim}`] : ['', '', ''];
    return [title, seconds(of('healthMs')), seconds(of('pageMs')), ...beside, ...memory];
  });
  const times = ['health, s', 'token and page, s', 'bare PGlite, s', 'ratio of the pairs', 'at most'];
  const head = ['start', ...times, 'resident, MB', 'of it anonymous, MB', 'at most'];
  return { head, rows };
}

/** Each in an empty folder, with an empty cache of compiled code, as after `npm ci` in a fresh clone. */
async function coldStarts({ starts, idleMs }: Effort): Promise<Start[]> {
  const results: Start[] = [];
  while (results.length < starts) {
    await using cache = await emptyFolder();
    await using data = await emptyFolder();
    const start = await startOnce({ dataDir: data.path, compileCache: cache.path, idleMs });
    results.push({ ...start, bareMs: await bareFirst() });
  }
  return results;
}

/** A bare script's start in an empty folder, with an empty cache of compiled code. */
async function bareFirst(): Promise<number> {
  await using cache = await emptyFolder();
  await using data = await emptyFolder();
  return await startBare(data.path, cache.path);
}

/** Each on the folder of one before. */
async function warmStarts({ dataDir, servers }: World, { starts, idleMs }: Effort): Promise<Start[]> {
  await using cache = await emptyFolder();
  const options = { dataDir, servers, compileCache: cache.path };
  await startOnce({ ...options, idleMs: 0 });
  const bare = () => (servers.DATABASE_URL === undefined ? startBare(dataDir, cache.path) : undefined);
  await bare();
  const results: Start[] = [];
  while (results.length < starts) results.push({ ...(await startOnce({ ...options, idleMs })), bareMs: await bare() });
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
