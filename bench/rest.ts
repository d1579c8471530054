import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { SIGNING_SECRET } from './gateway/contenders.ts';
import { productionEnv } from './gateway/production.ts';
import { cpuMs, mainThread } from './lib/process-stats.ts';
import { type Server, startProduct } from './lib/product.ts';
import { print, type Table, tell } from './lib/report.ts';
import { deleteTopics, migrateWorld } from './lib/topics.ts';
import { onEachStores, seedWorld, type World } from './lib/world.ts';

const SECONDS = 60;
/** How long a process goes on with what its start has begun: V8 gives back what the start left after 100 s at the latest. */
export const SETTLE_MS = 120_000;
const ROLES = ['gateway', 'worker', 'all'];
/** What a gateway on servers may take, in milliseconds of CPU a second. */
const AIM = 8;

/** Measures what processes on servers take that nobody asks, one of each role side by side. */
export async function measureRest(seconds = SECONDS): Promise<Table> {
  const rows: string[][] = [];
  await onEachStores(['servers'], async (world) => {
    await using open = new AsyncDisposableStack();
    await seedWorld(world);
    await migrateWorld(world);
    open.defer(() => deleteTopics(world));
    const servers: Server[] = [];
    for (const role of ROLES) {
      const server = await startRole(world, role);
      open.defer(() => server.stop());
      servers.push(server);
    }
    await delay(SETTLE_MS);
    tell(`${seconds} s of rest …`);
    const spent = () => servers.map(({ pid }) => ({ cpuMs: cpuMs(pid), ...mainThread(pid) }));
    const [before, startedAt] = [spent(), performance.now()];
    await delay(seconds * 1_000);
    const [after, took] = [spent(), (performance.now() - startedAt) / 1_000];
    for (const [at, role] of ROLES.entries()) {
      const each = (member: keyof (typeof after)[number]) =>
        (((after[at]?.[member] ?? 0) - (before[at]?.[member] ?? 0)) / took).toFixed(1);
      rows.push([role, each('cpuMs'), role === 'gateway' ? `${AIM}` : '', each('mainMs'), each('wakeUps')]);
    }
  });
  return { head: ['role', 'CPU, ms/s', 'at most', 'of it main thread', 'wake-ups/s of the main thread'], rows };
}

/** Starts one process in production on servers that have been migrated. */
export function startRole(world: World, role: string): Promise<Server> {
  const own = { PORTCULLIS_ROLE: role, AUDIT_SPOOL_DIR: `${world.dataDir}/audit-${role}` };
  const env = { ...productionEnv(world), JWT_SECRET_USER: SIGNING_SECRET, ...own };
  return startProduct({ ...world, env });
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: `${SECONDS}` } } });
  print(await measureRest(Number(values.seconds)));
}
