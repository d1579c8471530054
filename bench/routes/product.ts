import { type Contender, productOf, requestOf, startUpstream, tokenOf } from '../gateway/contenders.ts';
import { cellsOf, type Effort, pairRounds, summaryOf } from '../lib/pairs.ts';
import { startProduct } from '../lib/product.ts';
import type { Table } from '../lib/report.ts';
import { cpuOfLoad } from '../lib/round.ts';
import { emptyFolder, onAllStores, type Stores, titleOf } from '../lib/world.ts';
import { manyEndpoints } from './endpoints.ts';
import { grouped } from './matchers-table.ts';

const CONNECTIONS = 32;
const AIM = 1.1;
/** Those that the measured requests and their token need; they stand behind all others. */
const NEEDED: readonly string[] = ['/v2/oauth/token', '/health', '/v1/accounts'];

type Ask = (contender: Contender) => { url: string; headers: Record<string, string> };

const REQUESTS: Record<string, Ask> = {
  'GET /health, local': ({ server }) => ({ url: `${server.url}/health`, headers: {} }),
  'GET /v1/accounts, proxied': ({ server, token = '' }) => requestOf(server, token),
};

/** CPU of the whole product by the number of its endpoints, the smallest number beside each of the others. */
export async function measureProduct(stores: Stores, counts: readonly number[], effort: Effort): Promise<Table> {
  await using folder = await emptyFolder();
  await using servers = new AsyncDisposableStack();
  const upstream = await startUpstream(folder.path);
  servers.defer(() => upstream.stop());
  const rows: string[][] = [];
  await onAllStores(
    counts.map(() => stores),
    async (worlds) => {
      await using products = new AsyncDisposableStack();
      const contenders: Contender[] = [];
      for (const [index, world] of worlds.entries()) {
        const product = await productOf(world, { accounts: upstream.url }, endpointsOf(counts[index] ?? 0));
        const server = products.adopt(await startProduct(product), (started) => started.stop());
        const token = await tokenOf(server, world);
        contenders.push({ title: grouped(counts[index] ?? 0), server, token });
      }
      for (const [title, ask] of Object.entries(REQUESTS)) rows.push(...(await rowsOf(title, ask, contenders, effort)));
    },
  );
  return {
    head: [
      `32 connections; ${titleOf(stores)}`,
      'endpoints',
      'CPU, µs',
      'ratio',
      'aim',
      'of the pairs',
      'p50, ms',
      'p99, ms',
    ],
    rows,
  };
}

async function rowsOf(title: string, ask: Ask, contenders: readonly Contender[], effort: Effort): Promise<string[][]> {
  const [base, ...others] = contenders;
  if (!base) return [];
  const run = (contender: Contender, requests: number) =>
    cpuOfLoad(contender.server, { ...ask(contender), method: 'GET', connections: CONNECTIONS, requests });
  const rounds = await pairRounds({ contenders: others, base, effort, run });
  return contenders.map((contender) => {
    const [cpuUs = '', ratio = '', ...rest] = cellsOf(summaryOf(rounds.get(contender) ?? []));
    return [title, contender.title, cpuUs, ratio, contender === base ? '' : `at most ${AIM}`, ...rest];
  });
}

function endpointsOf(count: number) {
  return (endpoints: readonly { path: string }[]): object[] => {
    const needed = endpoints.filter(({ path }) => NEEDED.includes(path));
    return [...manyEndpoints(count - needed.length), ...needed];
  };
}
