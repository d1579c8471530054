import { expect, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { type Portcullis, startOnRealServers } from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';
import { runCli } from '../support/start/process.ts';

/** Runs a command on the server's database; `line` is what is piped in. */
function commandsOn(p: Portcullis) {
  const env = { DATA_DIR: p.dataDir, DATABASE_URL: p.service.context.config.databaseUrl ?? '' };
  return async (args: readonly string[], line?: string) => {
    const { code, out, err } = await portcullis([...args, '--json'], env, line);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    return JSON.parse(out);
  };
}

/** Runs a command as a user does, in a process of its own. */
async function spawned(p: Portcullis, args: readonly string[]): Promise<void> {
  const env = { DATA_DIR: p.dataDir, DATABASE_URL: p.service.context.config.databaseUrl ?? '' };
  expect(await runCli([...args, '--json'], env)).toMatchObject({ code: 0, stderr: '' });
}

describeReal(['postgres', 'redis', 'kafka'], 'beside a running server', () => {
  it('D1-12 D3-06 D3-07: it knows a created client at once, and soon what has ended', async () => {
    await using p = await startOnRealServers();
    const run = commandsOn(p);
    const ask = (client_id: string, client_secret: string) =>
      p.call('POST', '/v2/oauth/token', { json: { grant_type: 'client_credentials', client_id, client_secret } });
    const flags = ['--name', 'Billing', '--grants', 'client_credentials', '--scopes', 'accounts:read'];
    const made = await run(['client', 'create', '--node', p.demo.node_id, ...flags]);
    const id: string = made.client_id;
    const first = await ask(id, made.client_secret);
    expect(first.status).toBe(200);

    const { client_secret: second } = await run(['client', 'rotate-secret', id, '--overlap', '3600']);
    expect((await ask(id, made.client_secret)).status).toBe(200);
    expect((await ask(id, second)).status).toBe(200);
    const { client_secret: third } = await run(['client', 'rotate-secret', id]);
    await expect.poll(async () => (await ask(id, made.client_secret)).status).toBe(401);
    await expect.poll(async () => (await ask(id, second)).status).toBe(401);
    expect((await ask(id, third)).status).toBe(200);

    const accounts = () => p.call('GET', '/v1/accounts', { token: first.json.access_token });
    expect((await accounts()).status).toBe(200);
    await spawned(p, ['client', 'disable', id]);
    await expect.poll(async () => (await accounts()).status).toBe(401);
    expect((await ask(id, third)).status).toBe(401);
  });

  it('D1-12 D3-17: a supervisor is unlocked at once, and sessions end with another password', async () => {
    await using p = await startOnRealServers();
    const run = commandsOn(p);
    const client = await addClient(p);
    const flags = ['--node', p.demo.node_id, '--username', 'ada', '--role', 'viewer'];
    const ada = await run(['supervisor', 'create', ...flags], 'the first password');
    const login = (password: string) =>
      p.call('POST', '/v2/oauth/token', { json: { grant_type: 'password', ...client, username: 'ADA', password } });
    for (let time = 0; time < 5; time++) expect((await login('wrong')).status).toBe(401);
    expect((await login('the first password')).status).toBe(401);
    await run(['supervisor', 'unlock', ada.id]);
    const { json } = await login('the first password');
    const accounts = () => p.call('GET', '/v1/accounts', { token: json.access_token });
    expect((await accounts()).status).toBe(200);
    const { password } = await run(['supervisor', 'set-password', ada.id]);
    await expect.poll(async () => (await accounts()).status).toBe(401);
    expect((await login('the first password')).status).toBe(401);
    expect((await login(password)).status).toBe(200);
    const stored = await rows(p).run((k) =>
      k.selectFrom('supervisors').select('password_hash').where('id', '=', ada.id),
    );
    expect(stored[0]?.password_hash).toMatch(/^\$argon2id\$/);
  });
});
