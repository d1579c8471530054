import { openDatabase } from '../../src/platform/database/open-database.ts';
import { withPostgres } from '../../test/support/services/pg-client.ts';
import type { Effort } from '../lib/pairs.ts';
import { clientToken, readDemoFile, startProduct } from '../lib/product.ts';
import { type Table, tell } from '../lib/report.ts';
import { median } from '../lib/statistics.ts';
import { onEachStores, seedWorld, type World } from '../lib/world.ts';
import { assertSameBody, startBare } from './measure.ts';
import { type Contender, roundOf } from './rounds.ts';
import { statementsOf } from './statements.ts';

const PAGES = [1, 10_000];
const CONNECTIONS = 8;

interface Side {
  page: number;
  contender: Contender;
  cpuUs: number[];
  /** Of requests one after another: nothing waits. */
  latencyMs: number[];
}

/**
 * The first page and the ten-thousandth of a node with 60 % of `accounts` accounts on PostgreSQL, each with its exact
 * total, beside a handler of node:http with the same two statements.
 */
export async function measureDeepPages(accounts: number, effort: Effort): Promise<Table> {
  const rows: string[][] = [];
  await onEachStores(['servers'], async (world) => {
    const sides = await measure(world, accounts, effort);
    const [first] = sides;
    for (const { page, product, raw } of sides) {
      rows.push([
        page.toLocaleString('en'),
        ...[product.cpuUs, raw.cpuUs].map((values) => median(values).toFixed(0)),
        median(product.cpuUs.map((value, at) => value / (raw.cpuUs[at] ?? Number.NaN))).toFixed(2),
        ...[product.latencyMs, raw.latencyMs].map((values) => median(values).toFixed(2)),
        (median(product.cpuUs) / median(first?.product.cpuUs ?? [])).toFixed(2),
        (median(product.latencyMs) / median(first?.product.latencyMs ?? [])).toFixed(2),
      ]);
    }
  });
  const head = ['page', 'Portcullis, µs', 'raw pg, µs', 'ratio (at most 3)', 'Portcullis, ms', 'raw pg, ms'];
  return { head: [...head, 'µs of page 1 (at most 2)', 'ms of page 1 (at most 2)'], rows };
}

async function measure(world: World, accounts: number, { pairs, requests, warmUp }: Effort) {
  await seedWorld(world);
  const demo = readDemoFile(world.dataDir);
  const url = world.servers.DATABASE_URL ?? '';
  tell(`inserting ${accounts.toLocaleString('en')} accounts …`);
  await insertAccounts(url, accounts, [demo.node_id, demo.other_node.node_id]);
  await using stack = new AsyncDisposableStack();
  const product = stack.adopt(await startProduct(world), (server) => server.stop());
  const token = await clientToken(product.url, demo);
  const sides: { page: number; product: Side; raw: Side }[] = [];
  for (const page of PAGES) {
    const statements = await statementsOfPage(url, demo.node_id, page);
    const raw = stack.adopt(await startBare(world, statements, { page, frame: 'http' }), (server) => server.stop());
    await assertSameBody(product, raw, token, page);
    const path = `/v1/accounts?limit=10&page=${page}`;
    sides.push({
      page,
      product: { page, contender: { server: product, token, path }, cpuUs: [], latencyMs: [] },
      raw: { page, contender: { server: raw, token: undefined, path }, cpuUs: [], latencyMs: [] },
    });
  }
  const all = sides.flatMap((side) => [side.product, side.raw]);
  for (const { contender } of all) await roundOf(contender, warmUp, CONNECTIONS);
  for (let pair = 0; pair < pairs; pair += 1) {
    for (const side of all) {
      side.cpuUs.push((await roundOf(side.contender, requests, CONNECTIONS)).cpuUs);
      side.latencyMs.push(median((await roundOf(side.contender, Math.ceil(requests / 4), 1)).latencies));
    }
  }
  return sides;
}

async function statementsOfPage(url: string, nodeId: string, page: number) {
  await using database = await openDatabase({ url });
  return statementsOf(database, { nodeId, page });
}

/** Sixty of a hundred in the first node, in no order of time, as a platform's own rows come. */
async function insertAccounts(url: string, accounts: number, [first, second]: readonly string[]): Promise<void> {
  await withPostgres(url, async (client) => {
    await client.query(`
      insert into accounts (id, node_id, name, type, status, created_at, updated_at, deleted_at)
      select gen_random_uuid(), case when n % 10 < 6 then '${first}'::uuid else '${second}' end, 'Customer ' || n,
        'customer-segregated', 1, at, at, case when n % 50 = 7 then at end
      from (select n, timestamptz '2020-01-01 00:00:00+00' + (n::bigint * 7919 % ${accounts}) * interval '1 minute' as at
        from generate_series(1, ${accounts}) n) rows`);
    await client.query('vacuum analyze');
  });
}
