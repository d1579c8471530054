import { measureDeepPages } from './accounts/deep-pages.ts';
import { measureAccounts } from './accounts.ts';
import { measureAttacks } from './attacks.ts';
import { measureAudit } from './audit.ts';
import { measureBulk } from './bulk.ts';
import { measureBypasses, NAMES } from './bypasses.ts';
import { measureConsume } from './consume.ts';
import { measureDelivery } from './delivery.ts';
import { measureFrozen, measureGateway } from './gateway.ts';
import { measureGraphql } from './graphql.ts';
import { measureImport } from './import.ts';
import { commitNow, machine } from './lib/machine.ts';
import { watchOthers } from './lib/process-stats.ts';
import { print, type Table, tell } from './lib/report.ts';
import { measurePeers, tablesOf } from './peers.ts';
import { measureRealtime } from './realtime.ts';
import { measureRecords } from './records.ts';
import { measureRest } from './rest.ts';
import { measureRoutes } from './routes.ts';
import { measureStart, packagesTable } from './start.ts';
import { measureStorm } from './storm.ts';
import { measureTokens } from './tokens.ts';
import { measureWebhook } from './webhook.ts';

const STORES = ['embedded', 'servers'] as const;
const ACCOUNTS = 1_000_000;

/** In the order in which they are measured. */
const BENCHMARKS: Record<string, () => Promise<readonly Table[]>> = {
  peers: async () => tablesOf(await measurePeers()),
  rest: async () => [await measureRest()],
  start: async () => [await measureStart(STORES), packagesTable()],
  accounts: async () => [await measureAccounts(STORES)],
  'deep-pages': async () => [await measureDeepPages(ACCOUNTS, { pairs: 5, requests: 4_000, warmUp: 3_000 })],
  bulk: async () => [await measureBulk(25)],
  tokens: () => measureTokens(STORES),
  gateway: async () => [await measureGateway(STORES), ...(await measureFrozen(['servers']))],
  graphql: () => measureGraphql(),
  audit: () => measureAudit(['servers']),
  records: async () => [await measureRecords()],
  attacks: () => measureAttacks(['servers']),
  routes: () => measureRoutes(),
  storm: async () => [await measureStorm(STORES)],
  delivery: async () => [await measureDelivery(STORES)],
  realtime: () => measureRealtime(STORES),
  webhook: () => measureWebhook(STORES),
  consume: async () => [await measureConsume(STORES)],
  import: async () => [await measureImport()],
  bypasses: async () => [await measureBypasses(NAMES, 30)],
};

/** Prints the tables of the benchmarks that are named, or of all, and the machine that they were measured on. */
async function measureAll(named: readonly string[]): Promise<void> {
  const unknown = named.filter((name) => !Object.hasOwn(BENCHMARKS, name));
  if (unknown.length > 0)
    throw new Error(`no benchmark ${unknown.join(', ')}: one of ${Object.keys(BENCHMARKS).join(', ')}`);
  const [commit, busy] = [commitNow(), watchOthers()];
  for (const [name, measure] of Object.entries(BENCHMARKS)) {
    if (named.length > 0 && !named.includes(name)) continue;
    tell(`${name} …`);
    for (const table of await measure()) print(table);
  }
  process.stdout.write(`${machine(commit, busy())}\n`);
}

await measureAll(process.argv.slice(2));
