import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { freshDatabase } from '../support/services/isolation.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';
import { type Running, runCli, startInstance } from '../support/start/process.ts';

/** The source of the last release with its packages, which .ci/last-release makes. */
const { RELEASE_TREE: tree } = process.env;

function clashes(): void {
  let running: Running;
  let url: string;
  let authorization: string;
  const stack = new AsyncDisposableStack();
  beforeAll(async () => {
    const database = stack.use(await freshDatabase());
    url = database.url;
    const env = { DATA_DIR: await temporaryFolder(), DATABASE_URL: url };
    for (const command of ['migrate', 'seed']) {
      expect(await runCli([command], env, '', tree)).toMatchObject({ code: 0 });
    }
    running = stack.use(await startInstance(env, undefined, undefined, tree));
    const demo = JSON.parse(await readFile(join(env.DATA_DIR, 'demo.json'), 'utf8'));
    const token = await post('/v2/oauth/token', { grant_type: 'client_credentials', ...demo.client });
    authorization = `Bearer ${token.json.access_token}`;
    // The schema of this version beneath the process of the last one.
    expect(await portcullis(['migrate'], env)).toMatchObject({ code: 0 });
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  async function post(path: string, json: unknown) {
    const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) };
    const response = await fetch(`${running.baseUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(json) });
    return { status: response.status, json: await response.json() };
  }

  function query(text: string) {
    return withPostgres(url, async (client) => (await client.query(text)).rows);
  }

  const wallet = () => `0x${randomUUID()}`;
  /** Two emails that the last release tells apart. */
  const pair = () => {
    const n = randomUUID();
    return [`νίκος-${n}@x.gr`, `ΝΊΚΟΣ\u00ad-${n}@x.gr`] as const;
  };
  const RPC = '/v2/users/migrate/with-wallet';

  it('D7-11: a row whose email differs only in spelling from an existing one fails, and the other rows are created', async () => {
    const [first, other] = pair();
    const emails = [first, `${randomUUID()}@x.y`, other, `${randomUUID()}@x.y`];
    const { status, json } = await post(`${RPC}/bulk`, {
      users: emails.map((email) => ({ wallet_address: wallet(), email })),
    });
    expect(status).toBe(200);
    expect(json.results.map((row: { status: string }) => row.status)).toEqual([
      'created',
      'created',
      'failed',
      'created',
    ]);
  });

  it('D7-11: a single user with such an email is rejected and not stored', async () => {
    const [first, other] = pair();
    expect((await post(RPC, { wallet_address: wallet(), email: first })).status).toBe(201);
    expect((await post(RPC, { wallet_address: wallet(), email: other })).status).toBe(500);
    expect(await query(`select 1 from users where email = '${other}'`)).toEqual([]);
  });

  it('D7-11: a file with such a row finishes, with one failed row that is not retried', async () => {
    const [first, other] = pair();
    const file = `wallet_address,email\n${wallet()},${first}\n${wallet()},${other}\n${wallet()},${randomUUID()}@x.y\n`;
    const form = new FormData();
    const operation = 'mutation ($file: File!) { startUserMigration(file: $file) { ... on Migration { id } } }';
    form.append('operations', JSON.stringify({ query: operation, variables: { file: null } }));
    form.append('map', JSON.stringify({ 0: ['variables.file'] }));
    form.append('0', new Blob([file]), 'users.csv');
    const response = await fetch(`${running.baseUrl}/graphql`, {
      method: 'POST',
      headers: { authorization },
      body: form,
    });
    const { data } = (await response.json()) as { data: { startUserMigration: { id: string } } };
    const migration = () =>
      query(`select status, success, failed from migrations where id = '${data.startUserMigration.id}'`);
    await vi.waitFor(async () => expect(await migration()).toMatchObject([{ status: 'done' }]), { timeout: 30_000 });
    expect(await migration()).toEqual([{ status: 'done', success: 2, failed: 1 }]);
    // The process tried the rows once: it has logged the one that it could not store, and no more.
    expect(running.stdout().split('could not store a user').length - 1).toBeLessThanOrEqual(2);
  });
}

if (tree === undefined)
  describe.skip('users in the last release [no RELEASE_TREE: .ci/last-release makes one]', clashes);
else describeReal('postgres', 'users in a process of the last release, on the schema of this version', clashes);
