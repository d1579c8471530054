import { setTimeout as delay } from 'node:timers/promises';
import { withPostgres } from '../../test/support/services/pg-client.ts';
import { SIGNING_SECRET, tokenOf } from '../gateway/contenders.ts';
import { backendCpu } from '../graphql/postgres-cpu.ts';
import { callerTokens, TENANT } from '../lib/callers.ts';
import { cpuMs, untilIdle } from '../lib/process-stats.ts';
import { type Server, startProduct } from '../lib/product.ts';
import type { Table } from '../lib/report.ts';
import { deleteTopics, migrateWorld } from '../lib/topics.ts';
import { seedWorld, type World } from '../lib/world.ts';
import { openSse } from '../realtime/sse-client.ts';
import { costOfLoad, gatewayOn, spentIn } from './cost.ts';
import { insertCallers } from './insert-callers.ts';
import { type Curve, headOf, measureSizes, rowsOf } from './rounds.ts';

const ACCOUNTS = 100;
const CONNECTIONS = 8;
const IDLE_MS = 5_000;
const NAMES = ['CPU of the gateway, µs', 'of PostgreSQL, µs'];

const INSERT_ACCOUNTS = `
  insert into accounts (id, node_id, name, type, status, created_at, updated_at)
  select gen_random_uuid(), id, 'Customer ' || n, 'customer-segregated', 1, at, at
  from nodes, generate_series(1, $1::integer) n, lateral (select now() - n * interval '1 minute' as at) made
  where id::text like '${TENANT}%'`;

interface Side {
  tenants: number;
  world: World;
  server: Server;
  token: string;
}

/** A page of accounts among so many tenants of the same size, each asked in turn, and what idle tenants take. */
export const measureTenants: Curve = async (open, { rounds, requests, tenants }) => {
  await using stack = new AsyncDisposableStack();
  const most = Math.max(...tenants);
  const sides: Side[] = [];
  for (const count of tenants) {
    const world = stack.use(await open());
    await seedWorld(world, 'limits');
    await migrateWorld(world);
    stack.defer(() => deleteTopics(world));
    await insertCallers(world, { clients: most, tenants: count });
    await withPostgres(world.servers.DATABASE_URL ?? '', async (client) => {
      await client.query(INSERT_ACCOUNTS, [ACCOUNTS]);
      await client.query('vacuum analyze');
    });
    const server = stack.adopt(await startProduct(gatewayOn(world)), (started) => started.stop());
    sides.push({ tenants: count, world, server, token: await tokenOf(server, world) });
  }
  const title = `tenants of ${ACCOUNTS} accounts, a page of ten`;
  const byTenants = new Map(sides.map((side) => [side.tenants, side]));
  const measured = await measureSizes(title, tenants, rounds, async (count) => {
    const { world, server, token } = byTenants.get(count) as Side;
    const load = {
      ...{ url: `${server.url}/v1/accounts?limit=10`, method: 'GET' as const },
      ...{ headers: { authorization: `Bearer ${token}` }, tokenSecret: SIGNING_SECRET },
      callers: { clients: most, tenants: count },
    };
    const { productUs, postgresUs } = await costOfLoad(world, server, { ...load, connections: CONNECTIONS, requests });
    return { [NAMES[0] ?? '']: productUs, [NAMES[1] ?? '']: postgresUs };
  });
  return [{ head: headOf(title, NAMES), rows: rowsOf(measured, NAMES) }, await measureIdle(sides)];
};

/** What subscribers take who wait for events that do not come: one of each tenant. */
async function measureIdle(sides: readonly Side[]): Promise<Table> {
  await using subscribers = new AsyncDisposableStack();
  const rows: string[][] = [];
  for (const { tenants, server, token, world } of sides) {
    const quiet = await idleCpu(world, server);
    for (const own of callerTokens(token, SIGNING_SECRET, { clients: tenants, tenants })) {
      const options = { url: server.url, token: own, id: undefined, onUpdate: () => undefined, isBare: false };
      const { stop } = await openSse(options);
      subscribers.defer(stop);
    }
    const watched = await idleCpu(world, server);
    const each = (from: number, to: number) => (((to - from) * 1_000) / tenants).toFixed(0);
    rows.push([
      tenants.toLocaleString('en'),
      ...[quiet.product, watched.product].map((ms) => ms.toFixed(0)),
      each(quiet.product, watched.product),
      ...[quiet.postgres, watched.postgres].map((ms) => ms.toFixed(0)),
      each(quiet.postgres, watched.postgres),
    ]);
  }
  return {
    head: [
      'idle tenants with a subscriber each',
      'gateway without them, ms/s',
      'with them, ms/s',
      'a tenant, µs/s',
      'PostgreSQL without them, ms/s',
      'with them, ms/s',
      'a tenant, µs/s',
    ],
    rows,
  };
}

/** Milliseconds of CPU a second. */
async function idleCpu({ servers: { DATABASE_URL = '' } }: World, { pid }: Server) {
  // What the requests before have left, such as audit records, is worked off.
  await untilIdle(pid);
  await delay(1_000);
  return withPostgres(DATABASE_URL, async (client) => {
    const [productMs, postgres] = [cpuMs(pid), await backendCpu(client, 'portcullis')];
    await delay(IDLE_MS);
    const spent = spentIn(postgres, await backendCpu(client, 'portcullis'));
    return { product: ((cpuMs(pid) - productMs) * 1_000) / IDLE_MS, postgres: (spent * 1_000) / IDLE_MS };
  });
}
