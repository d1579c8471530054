import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { demoSchema } from '../../src/app/demo/demo.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { emptyFolder, type TestFolder } from '../support/start/folders.ts';
import { type Running, startInstance } from '../support/start/process.ts';

// Each test starts processes, on machines that are busy with other tests.
const COLUMNS = 80;
const HEADER = /^\{"Authorization": "Bearer [\w-]+\.[\w-]+\.[\w-]+"\}$/;
const UUID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);

/** What an instance has printed for its operator: all but its log. */
function greeting(instance: Running): string {
  return instance
    .stdout()
    .split('\n')
    .filter((line) => !line.startsWith('{"level"'))
    .join('\n');
}

/** The commands as printed: the paragraph below each numbered title. */
function commands(instance: Running): string[] {
  const paragraphs = greeting(instance).split('\n\n');
  return paragraphs.flatMap((text, at) => (/^\d\. .*:$/.test(text) ? [paragraphs[at + 1] ?? ''] : []));
}

/** Pastes text into one bash, and gives what each part printed. */
async function paste(parts: readonly string[]): Promise<string[]> {
  const mark = '--- next ---';
  const bash = spawn('bash', ['--norc'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let output = '';
  bash.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  bash.stdin.end(parts.map((part) => `${part}\necho '${mark}'\n`).join(''));
  await once(bash, 'close');
  return output.split(`${mark}\n`).slice(0, -1);
}

async function demoFile(folder: TestFolder) {
  return JSON.parse(await readFile(join(folder.path, 'demo.json'), 'utf8'));
}

describe('an embedded instance', () => {
  const folder = beforeTests(emptyFolder);
  const first = beforeTests(() => startInstance({ DATA_DIR: folder.path }));
  let kept: ReturnType<typeof rowsOf> | undefined;

  /** Stops the first start, and gives what it has left. */
  const leftByFirst = () => {
    kept ??= first.kill('SIGTERM').then((stopped) => {
      expect(stopped).toMatchObject({ code: 0, stderr: '' });
      return rowsOf(folder);
    });
    return kept;
  };

  it('D1-02: the first start writes every documented member of demo.json, readable only by its owner', async () => {
    expect((await stat(join(folder.path, 'demo.json'))).mode & 0o777).toBe(0o600);
    const login = { username: 'admin', password: expect.stringMatching(/^\S{20,}$/) };
    const client = { client_id: UUID, client_secret: expect.stringMatching(/^\S{40,}$/) };
    expect(await demoFile(folder)).toEqual({
      base_url: first.baseUrl,
      graphql_url: `${first.baseUrl}/graphql`,
      mcp_url: `${first.baseUrl}/v2/mcp`,
      console_client_id: UUID,
      console_url: expect.stringMatching(`^${first.baseUrl}/console/\\?client=[0-9a-f-]{36}$`),
      instance_id: expect.stringMatching(/^\d+$/),
      node_id: UUID,
      account_id: UUID,
      wallet_id: UUID,
      user_id: UUID,
      asset_id: UUID,
      network_id: UUID,
      second_network_id: UUID,
      other_chain_network_id: UUID,
      network_currency_id: UUID,
      target_wallet_id: UUID,
      supervisor: login,
      client,
      webhook: { username: 'chain-processor', password: expect.stringMatching(/^\S{20,}$/) },
      transactions: {
        token_transactions: UUID,
        node_transactions: UUID,
        currency_token_transactions: UUID,
        user_transactions: UUID,
        secondary_market_transactions: UUID,
        otc_transactions: UUID,
      },
      other_node: { node_id: UUID, account_id: UUID, wallet_id: UUID, supervisor: login, client },
    });
  });

  it('D1-01: the greeting fits 80 columns, except its header, and contains every address and credential', async () => {
    const { supervisor, client, webhook } = await demoFile(folder);
    const lines = greeting(first).split('\n');
    expect(lines.filter((line) => line.length > COLUMNS && !HEADER.test(line))).toEqual([]);
    const secrets = [client.client_id, client.client_secret, supervisor.password, webhook.password, first.baseUrl];
    for (const secret of secrets) expect(greeting(first)).toContain(secret);
    expect(greeting(first)).toContain('not of the machine');
    const addresses = /^ {2}(?:GraphiQL|Swagger UI|MCP|Metrics) +(?<url>http\S+)/gm;
    const urls = Array.from(greeting(first).matchAll(addresses), ({ groups }) => groups?.url);
    const paths = ['/graphql', '/swagger/', '/v2/mcp'].map((path) => `${first.baseUrl}${path}`);
    expect(urls).toEqual([...paths, `${first.adminUrl}/metrics`]);
    for (const url of urls) expect((await fetch(url ?? '', { headers: { accept: 'text/html' } })).status).not.toBe(404);
  });

  it('D1-01: the printed header can be pasted into GraphiQL, and its token is not in the log', async () => {
    const headers = JSON.parse(
      greeting(first)
        .split('\n')
        .find((line) => HEADER.test(line)) ?? '',
    );
    const body = JSON.stringify({ query: '{ accounts { totalCount } }' });
    const answer = await fetch(`${first.baseUrl}/graphql`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
    });
    expect(await answer.json()).toEqual({ data: { accounts: { totalCount: 25 } } });
    const [, token = ''] = headers.Authorization.split(' ');
    const log = first.stdout().split('\n');
    expect(log.filter((line) => line.startsWith('{"level"') && line.includes(token))).toEqual([]);
  });

  it('D1-01: the three printed commands work as pasted', async () => {
    const [token = '', accounts = '', notification = ''] = await paste(commands(first));
    expect(token).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    expect(JSON.parse(accounts)).toMatchObject({ page: 1, per_page: 3, total: 25 });
    expect(notification).toMatch(/^data: \{.*"status":"DONE".*\}$/m);
    expect(notification).toContain('0xfeed');
  });

  it('D1-03: only the admin port serves metrics, probes and the status', async () => {
    for (const path of ['/metrics', '/livez', '/readyz', '/status']) {
      expect((await fetch(`${first.adminUrl}${path}`)).status, path).toBe(200);
      expect((await fetch(`${first.baseUrl}${path}`)).status, path).toBe(404);
    }
  });

  it('D1-01, D1-08: a later start keeps every row and prints the same credentials, with the current public URL', async () => {
    const before = await demoFile(folder);
    const rows = await leftByFirst();
    const password = 'another password of the chain processor';
    const url = 'https://gate.example';
    await using second = await startInstance({ DATA_DIR: folder.path, WEBHOOK_PASSWORD: password, PUBLIC_URL: url });
    const after = await demoFile(folder);
    expect(after).toEqual({
      ...before,
      base_url: url,
      graphql_url: `${url}/graphql`,
      mcp_url: `${url}/v2/mcp`,
      console_url: `${url}/console/?client=${before.console_client_id}`,
      webhook: { username: 'chain-processor', password },
    });
    for (const text of [before.client.client_secret, before.supervisor.password, `curl -s ${url}/v2/oauth/token`]) {
      expect(greeting(second)).toContain(text);
    }
    await second.kill('SIGTERM');
    const later = await rowsOf(folder);
    expect(later.audit).toBeGreaterThanOrEqual(rows.audit);
    expect({ ...later, audit: rows.audit }).toEqual(rows);
  });

  it('D1-02: the demo has 25 accounts and two deleted ones; its client has every grant and permission, and no limits', async () => {
    const { kept: tables } = await leftByFirst();
    const demo = demoSchema.parse(await demoFile(folder));
    const accounts = tables.accounts?.filter((account) => account.node_id === demo.node_id) ?? [];
    expect(accounts.filter((account) => account.deleted_at === null)).toHaveLength(25);
    expect(accounts.filter((account) => account.deleted_at !== null)).toHaveLength(2);
    for (const { node_id, client } of [demo, demo.other_node]) {
      const row = tables.clients?.find((found) => found.id === client.client_id && found.node_id === node_id);
      expect(row).toMatchObject({
        grant_types: ['password', 'client_credentials', 'refresh_token'],
        scopes: [...PERMISSIONS],
        status: 'active',
        allowed_ips: [],
        require_certificate: false,
        requests_per_second: null,
        requests_per_minute: null,
        requests_per_hour: null,
        monthly_limit: null,
      });
    }
  });
});

/** How many rows the tables hold, and every row of those that the demo is made of. */
async function rowsOf(folder: TestFolder) {
  await using database = await openDatabase({ dataDir: join(folder.path, 'postgres') });
  const door = database.db.unscoped('a test reads all');
  const tables = [
    'nodes',
    'clients',
    'client_secrets',
    'supervisors',
    'accounts',
    'wallets',
    'assets',
    'users',
  ] as const;
  const kept: Record<string, Record<string, unknown>[]> = {};
  for (const table of [...tables, 'transactions', 'transaction_events'] as const) {
    kept[table] = await door.run((k) => k.selectFrom(table).selectAll());
  }
  const audit = await door.run((k) => k.selectFrom('audit_records').select('id'));
  return { kept, audit: audit.length };
}
