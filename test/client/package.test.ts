import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPage } from '../support/harness/browser.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';
import { ROOT } from '../support/start/process.ts';

const run = promisify(execFile);
/** This Node, and Node 22 if there is one. */
const NODES = [process.execPath, ...(process.env.NODE_22 ? [process.env.NODE_22] : [])];

const PROGRAM = `import { NoResponseError, NotFoundError, Portcullis, sign, type StoredRule, verify } from '@portcullis/client';

const [baseUrl = '', clientId = '', clientSecret = ''] = process.argv.slice(2);
const portcullis = new Portcullis({ baseUrl, clientId, clientSecret });
const names: string[] = [];
for await (const { name } of portcullis.listAccounts({ limit: 10 })) names.push(name);
const rule: Promise<StoredRule> = portcullis.createWalletRule(crypto.randomUUID(), {
  name: 'Limit', type: 'permissionless_transfer_limit', network_id: crypto.randomUUID(), network_currency_id: crypto.randomUUID(),
  permissionless_transfer_limit_rule: { max_amount: '12345678901234567890', time_period: 'day', time_period_value: 1 },
});
const isMissing = await rule.then(() => false, (error: unknown) => error instanceof NotFoundError);
const secret = 'whsec_${btoa('this is a secret of the chain processor')}';
const isSigned = await verify('{}', await sign('{}', secret), secret);
const closed = new Portcullis({ baseUrl: 'http://127.0.0.1:1', clientId, clientSecret, retries: 0 });
const error = await closed.createWalletRule('a', {} as never).catch((reason: unknown) => reason);
const { mayHaveBeenApplied } = error as NoResponseError;
console.log(JSON.stringify({ accounts: names.length, isMissing, isSigned, mayHaveBeenApplied }));
`;

let p: Portcullis;
let project: string;

beforeAll(async () => {
  [p, project] = await Promise.all([startPortcullis(), mkdtemp(join(tmpdir(), 'portcullis-client-'))]);
  const npm = (cwd: string, ...args: string[]) => run('npm', args, { cwd });
  const { stdout } = await npm(join(ROOT, 'client'), 'pack', '--json', '--pack-destination', project);
  const packed = Object.values(JSON.parse(stdout)) as { filename: string; files: { path: string }[] }[];
  expect(packed[0]?.files.map(({ path }) => extname(path)).filter((name) => !/^\.(js|ts|json|md)$/.test(name))).toEqual(
    [],
  );
  await writeFile(join(project, 'package.json'), '{"type": "module", "private": true}');
  await npm(project, 'install', '--offline', '--no-audit', `./${packed[0]?.filename}`);
  await symlink(join(ROOT, 'node_modules/@types'), join(project, 'node_modules/@types'));
  await writeFile(join(project, 'program.ts'), PROGRAM);
});
afterAll(async () => {
  await rm(join(ROOT, 'client/dist'), { recursive: true, force: true });
  await rm(project, { recursive: true, force: true });
  await p[Symbol.asyncDispose]();
});

describe('the packed client', () => {
  it('installs into an empty project without dependencies', () => {
    const { dependencies, peerDependencies } = JSON.parse(
      readFileSync(join(project, 'node_modules/@portcullis/client/package.json'), 'utf8'),
    );
    expect([dependencies, peerDependencies]).toEqual([undefined, undefined]);
  });

  it('publint reports no error', async () => {
    const publint = join(ROOT, 'node_modules/publint/src/cli.js');
    const folder = join(project, 'node_modules/@portcullis/client');
    const { stdout } = await run(process.execPath, [publint, 'run', folder, '--strict', '--pack', 'false']);
    expect(stdout).toContain('All good!');
  });

  it('type-checks under tsc --strict, without the types of browsers', async () => {
    const flags = [
      '--strict',
      '--noEmit',
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--lib',
      'es2023',
      '--types',
      'node',
    ];
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...flags, 'program.ts'], {
      cwd: project,
    });
  });

  it.each(NODES)('runs on %s', async (node) => {
    const { client_id: clientId, client_secret: clientSecret } = p.demo.client;
    const { stdout } = await run(node, ['program.ts', p.url, clientId, clientSecret], { cwd: project });
    expect(JSON.parse(stdout)).toEqual({ accounts: 25, isMissing: true, isSigned: true, mayHaveBeenApplied: false });
  });
});

describeReal(['chromium'], 'the packed client in a browser', () => {
  it('lists accounts with a token from the page, and follows a transaction', async () => {
    const files = join(project, 'node_modules/@portcullis/client/dist');
    const server = createServer(({ url = '' }, res) => {
      if (url.startsWith('/lost')) return res.destroy();
      if (!url.endsWith('.js')) res.setHeader('content-type', 'text/html').end('<!doctype html>');
      else res.setHeader('content-type', 'text/javascript').end(readFileSync(join(files, url)));
      return res;
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    await using open = await openPage(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, '/');
    const { page } = open;
    const given = JSON.stringify([p.url, await p.clientToken(), p.demo.transactions.otc_transactions]);
    const seen = await page.evaluate(`(async ([baseUrl, token, id]) => {
      const { Portcullis, sign, verify } = await import('/index.js');
      const client = new Portcullis({ baseUrl, token: async () => token });
      const accounts = await Array.fromAsync(client.listAccounts());
      const updates = client.subscribe('subscription ($id: ID!) { transaction(id: $id) { id } }', () => ({ id }));
      const secret = 'whsec_' + btoa('this is a secret of the chain processor');
      const isSigned = await verify('{}', await sign('{}', secret), secret);
      const lost = new Portcullis({ baseUrl: location.origin + '/lost', token: async () => token, retries: 0 });
      const { code, mayHaveBeenApplied } = await lost.migrateUser({}).catch((error) => error);
      for await (const { transaction } of updates) {
        return { accounts: accounts.length, transaction: transaction.id, isSigned, code, mayHaveBeenApplied };
      }
    })(${given})`);
    const failure = { code: 'no_response', mayHaveBeenApplied: true };
    expect(seen).toEqual({
      accounts: 25,
      transaction: p.demo.transactions.otc_transactions,
      isSigned: true,
      ...failure,
    });
    server.close();
  });
});
