import { parseArgs } from 'node:util';
import { request } from 'undici';
import { type PostgresClient, withPostgres } from '../test/support/services/pg-client.ts';
import { newRows } from './bulk/rows.ts';
import { insertByHand } from './bulk/statement.ts';
import { clientToken, readDemoFile, startProduct } from './lib/product.ts';
import { print, type Table, tell } from './lib/report.ts';
import { median } from './lib/statistics.ts';
import { onEachStores, seedWorld, type World } from './lib/world.ts';

const SIZES = [0, 100_000, 1_000_000];
const ROWS = 500;
const WARM_UP = 100;

interface Size {
  users: number;
  productMs: number[];
  byHandMs: number[];
}

/**
 * A bulk migration of 500 new users through the whole product, beside one hand-written statement through pg, with so
 * many users in the node.
 */
export async function measureBulk(pairs: number): Promise<Table> {
  const sizes: Size[] = [];
  await onEachStores(['servers'], async (world) => {
    for await (const size of measure(world, pairs)) sizes.push(size);
  });
  const [empty] = sizes;
  const rows = sizes.map(({ users, productMs, byHandMs }) => {
    const ratios = productMs.map((value, at) => value / (byHandMs[at] ?? Number.NaN));
    return [
      users.toLocaleString('en'),
      median(productMs).toFixed(1),
      median(byHandMs).toFixed(1),
      median(ratios).toFixed(2),
      (median(productMs) / median(empty?.productMs ?? [])).toFixed(2),
    ];
  });
  const head = ['users in the node', 'Portcullis, ms', 'one statement, ms', 'ratio (at most 2)'];
  return { head: [...head, 'of an empty node (at most 1.5)'], rows };
}

async function* measure(world: World, pairs: number): AsyncGenerator<Size> {
  await seedWorld(world);
  const demo = readDemoFile(world.dataDir);
  await using stack = new AsyncDisposableStack();
  const product = stack.adopt(await startProduct(world), (server) => server.stop());
  const token = await clientToken(product.url, demo);
  const migrate = async () => {
    const body = JSON.stringify({ users: newRows(ROWS) });
    return timed(() => migrateBulk(product.url, token, body));
  };
  yield* await withPostgres(world.servers.DATABASE_URL ?? '', async (client) => {
    const byHand = async () => {
      const rows = newRows(ROWS);
      return timed(() => insertByHand(client, demo.node_id, rows));
    };
    const sizes: Size[] = [];
    for (const users of SIZES) {
      tell(`${users.toLocaleString('en')} users …`);
      await fill(client, demo.node_id, users);
      for (let round = 0; round < WARM_UP; round += 1) await Promise.all([await migrate(), await byHand()]);
      const size: Size = { users, productMs: [], byHandMs: [] };
      for (let pair = 0; pair < pairs; pair += 1) {
        // What earlier rounds have made would fill the empty node.
        if (pair % 5 === 0) await fill(client, demo.node_id, users);
        size.productMs.push(await migrate());
        size.byHandMs.push(await byHand());
      }
      sizes.push(size);
    }
    return sizes;
  });
}

async function timed(work: () => Promise<number>): Promise<number> {
  const from = performance.now();
  const created = await work();
  const ms = performance.now() - from;
  if (created !== ROWS) throw new Error(`${created} of ${ROWS} users were created`);
  return ms;
}

async function migrateBulk(url: string, token: string, body: string): Promise<number> {
  const answer = await request(`${url}/v2/users/migrate/with-wallet/bulk`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body,
  });
  const json = (await answer.body.json()) as { success?: number };
  if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}: ${JSON.stringify(json)}`);
  return json.success ?? 0;
}

/** Leaves so many users in the node, and nothing of what rounds have made. */
async function fill(client: PostgresClient, nodeId: string, users: number): Promise<void> {
  await client.query('truncate outbox, migration_rows');
  await client.query('delete from migrations');
  await client.query("delete from users where address not like 'stored-%'");
  await client.query(
    `insert into users (id, node_id, external_id, name, surname, email, address, created_at)
      select gen_random_uuid(), $1::uuid, 'stored-' || n, 'Name', 'Surname', 'stored-' || n || '@example.com', 'stored-' || n, now()
      from generate_series(1 + (select count(*) from users where address like 'stored-%'), $2::int) n`,
    [nodeId, users],
  );
  await client.query('vacuum analyze users, outbox, migrations, migration_rows');
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { pairs: { type: 'string', default: '25' } } });
  print(await measureBulk(Number(values.pairs)));
}
