import { execFileSync } from 'node:child_process';
import { availableParallelism, totalmem } from 'node:os';
import { measureDeepPages } from './accounts/deep-pages.ts';
import { measureAccounts } from './accounts.ts';
import { measureBulk } from './bulk.ts';
import { measureDelivery } from './delivery.ts';
import { measureFrozen, measureGateway } from './gateway.ts';
import { measureImport } from './import.ts';
import { busyShare } from './lib/process-stats.ts';
import { ROOT } from './lib/product.ts';
import { markdown, tell, writeSection } from './lib/report.ts';
import { measureStart, packagesTable } from './start.ts';
import { measureStorm } from './storm.ts';
import { measureTokens } from './tokens.ts';

const STORES = ['embedded', 'servers'] as const;
const ACCOUNTS = 1_000_000;
const QUIET_SHARE = 0.05;

/** Measures everything and writes docs/measured.md between its markers. */
async function measureAll(): Promise<void> {
  const commit = commitNow();
  const before = await busyShare();
  const start = await measureStart(STORES);
  writeSection('start', [start, packagesTable()].map(markdown).join('\n\n'));
  writeSection('accounts', markdown(await measureAccounts(STORES)));
  writeSection('deep-pages', markdown(await measureDeepPages(ACCOUNTS, { pairs: 5, requests: 4_000, warmUp: 3_000 })));
  writeSection('bulk', markdown(await measureBulk(25)));
  writeSection('tokens', (await measureTokens(STORES)).map(markdown).join('\n\n'));
  const frozen = await measureFrozen(['servers']);
  writeSection('gateway', [await measureGateway(STORES), ...frozen].map(markdown).join('\n\n'));
  writeSection('storm', markdown(await measureStorm(STORES)));
  writeSection('delivery', markdown(await measureDelivery(STORES)));
  writeSection('import', markdown(await measureImport()));
  const after = await busyShare();
  writeSection('machine', machine(commit, Math.max(before, after)));
  tell('docs/measured.md is written');
}

function commitNow(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  const isClean = git('status', '--porcelain', '--', 'src', 'migrations', 'package-lock.json', 'gateway.yaml') === '';
  return `${git('rev-parse', '--short', 'HEAD')}${isClean ? '' : ' with changes'}`;
}

function machine(commit: string, busy: number): string {
  const quiet = busy <= QUIET_SHARE ? 'quiet' : 'not quiet';
  const load = `${quiet}: others took ${(busy * 100).toFixed(0)} % of it`;
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return [
    `- Commit ${commit}, ${new Date().toISOString().slice(0, 10)}`,
    `- ${availableParallelism()} cores, ${memory}, ${process.platform} ${process.arch}, Node ${process.versions.node}; ${load}`,
    '- Servers, load and product share the machine',
  ].join('\n');
}

await measureAll();
