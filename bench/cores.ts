import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gatewayConfig, requestOf, SIGNING_SECRET, startUpstream } from './gateway/contenders.ts';
import { requestOf as pageOf, portcullisAt, productOn } from './graphql/contenders.ts';
import { type FilledWorld, onFilledWorld } from './graphql/fill.ts';
import type { Load } from './lib/load.ts';
import { runEach } from './lib/pairs.ts';
import { cpuMs, watchOthers } from './lib/process-stats.ts';
import { freePort, type Server, startProduct } from './lib/product.ts';
import { print, type Table, tell } from './lib/report.ts';
import { runLoad } from './lib/run-script.ts';
import { median } from './lib/statistics.ts';

const CONNECTIONS = 64;
const EFFORT = { pairs: 5, requests: 10_000, pages: 2_000 };

/** What processes on one port answer a second, and how many cores they take for it. */
interface Speed {
  perSecond: number;
  cores: number;
}

/** Measures what two processes that share a port reach together, beside a single one, with the load on the same machine. */
export async function measureCores(effort = EFFORT): Promise<Table> {
  const rows: string[][] = [];
  await onFilledWorld(async (world) => {
    await using stack = new AsyncDisposableStack();
    const upstream = await startUpstream(world.dataDir);
    stack.defer(() => upstream.stop());
    const one = await startShared(world, upstream.url, 1, stack);
    const two = await startShared(world, upstream.url, 2, stack);
    const [first] = one;
    if (first === undefined) throw new Error('a gateway was started');
    const { token = '', ...contender } = await portcullisAt(first, world);
    const questions: [
      title: string,
      loadOf: (server: Server) => Omit<Load, 'connections' | 'requests'>,
      requests: number,
    ][] = [
      ['proxied GET with its record', (server) => requestOf(server, token), effort.requests],
      ['GraphQL page', (server) => pageOf({ ...contender, token, server }), effort.pages],
    ];
    const asked = questions.map(([title, loadOf, requests]) => ({ title, loadOf, requests }));
    const left = await runEach(asked, async ({ title, loadOf, requests }) => {
      const speedOf = (servers: readonly Server[]) =>
        speed(servers, { ...loadOf(servers[0] ?? first), connections: CONNECTIONS, requests });
      for (const servers of [one, two]) await speedOf(servers);
      const pairs: [alone: Speed, together: Speed][] = [];
      for (let pair = 1; pair <= effort.pairs; pair += 1) {
        tell(`${title}: pair ${pair} of ${effort.pairs} …`);
        pairs.push([await speedOf(one), await speedOf(two)]);
      }
      const ratios = pairs.map(([alone, together]) => together.perSecond / alone.perSecond);
      const middle = (of: (pair: [Speed, Speed]) => number) => median(pairs.map(of));
      rows.push([
        title,
        middle(([alone]) => alone.perSecond).toFixed(0),
        middle(([alone]) => alone.cores).toFixed(2),
        middle(([, together]) => together.perSecond).toFixed(0),
        middle(([, together]) => together.cores).toFixed(2),
        median(ratios).toFixed(2),
        `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
      ]);
    });
    if (left.length < asked.length) process.exitCode = 1;
  });
  return {
    head: [
      `${availableParallelism()} cores, ${CONNECTIONS} connections, load and servers on the same machine`,
      'one: requests/s',
      'cores',
      'two: requests/s',
      'cores',
      'two ÷ one',
      'of the pairs',
    ],
    rows,
  };
}

/** Starts gateways that share a port. */
async function startShared(
  world: FilledWorld,
  upstream: string,
  count: number,
  stack: AsyncDisposableStack,
): Promise<Server[]> {
  const { env, ...product } = productOn(world);
  const path = join(world.dataDir, 'cores.json');
  writeFileSync(path, JSON.stringify(gatewayConfig({ accounts: upstream })));
  const port = `${await freePort()}`;
  const servers: Server[] = [];
  for (let index = 0; index < count; index += 1) {
    const own = { AUDIT_SPOOL_DIR: join(world.dataDir, `audit-${port}-${index}`), JWT_SECRET_USER: SIGNING_SECRET };
    const shared = { REUSE_PORT: 'on', PORT: port, GATEWAY_CONFIG: path };
    const server = await startProduct({ ...product, env: { ...env, ...shared, ...own } });
    stack.defer(() => server.stop());
    servers.push(server);
  }
  return servers;
}

async function speed(servers: readonly Server[], load: Load): Promise<Speed> {
  const spent = () => servers.reduce((sum, { pid }) => sum + cpuMs(pid), 0);
  const [from, before] = [performance.now(), spent()];
  await runLoad(load);
  const ms = performance.now() - from;
  return { perSecond: (load.requests * 1_000) / ms, cores: (spent() - before) / ms };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { pairs: { type: 'string', default: `${EFFORT.pairs}` } },
  });
  const busy = watchOthers();
  print(await measureCores({ ...EFFORT, pairs: Number(values.pairs) }));
  tell(`others took ${(busy() * 100).toFixed(0)} % of the machine`);
}
