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
import { busyShare } from './lib/process-stats.ts';
import { markdown, type Table, tell, writeSection } from './lib/report.ts';
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

/** What stands between the markers of each section, in the order in which it is measured. */
const SECTIONS: Record<string, () => Promise<readonly Table[]>> = {
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

/** Measures the sections that are named, or all, and writes docs/measured.md between its markers; with all also the machine. */
async function measureAll(named: readonly string[]): Promise<void> {
  const unknown = named.filter((name) => !Object.hasOwn(SECTIONS, name));
  if (unknown.length > 0)
    throw new Error(`no section ${unknown.join(', ')}: one of ${Object.keys(SECTIONS).join(', ')}`);
  const commit = commitNow();
  const before = await busyShare();
  for (const [name, measure] of Object.entries(SECTIONS)) {
    if (named.length > 0 && !named.includes(name)) continue;
    tell(`${name} …`);
    writeSection(name, (await measure()).map(markdown).join('\n\n'));
  }
  const measuredOn = machine(commit, Math.max(before, await busyShare()));
  if (named.length === 0) writeSection('machine', measuredOn);
  tell(`docs/measured.md is written\n${measuredOn}`);
}

await measureAll(process.argv.slice(2));
