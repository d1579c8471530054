import { expect, it, vi } from 'vitest';
import { type Answer, type Portcullis, startOnRealServers } from '../harness.ts';
import { addClient, rows } from '../oauth/clients.ts';
import { describeReal } from '../services/real.ts';
import { portcullis } from './in-process.ts';

// Each test starts processes, on machines that are busy with other tests.
vi.setConfig({ testTimeout: 120_000 });

/** In which every replica has to know. */
const KNOWN_WITHIN_MS = 1_000;

/** Runs a command on the server's database; `line` is what is piped in. */
function commandsOn(p: Portcullis) {
  const env = { DATA_DIR: p.dataDir, DATABASE_URL: p.service.context.config.databaseUrl ?? '' };
  return async (args: readonly string[], line?: string) => {
    const { code, out, err } = await portcullis([...args, '--json'], env, line);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    return JSON.parse(out);
  };
}

/** Asks until the answer has the status; the last answer after as long as a server may take to know. */
async function within(status: number, ask: () => Promise<Answer>): Promise<number> {
  const until = performance.now() + KNOWN_WITHIN_MS;
  for (;;) {
    const answer = await ask();
    if (answer.status === status || performance.now() > until) return answer.status;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describeReal(['postgres', 'redis', 'kafka'], 'beside a running server', () => {
  it('D1-12 D3-06 D3-07: it knows a created client at once, and what has ended within a second', async () => {
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
    expect(await within(401, () => ask(id, made.client_secret))).toBe(401);
    expect(await within(401, () => ask(id, second))).toBe(401);
    expect((await ask(id, third)).status).toBe(200);

    const accounts = () => p.call('GET', '/v1/accounts', { token: first.json.access_token });
    expect((await accounts()).status).toBe(200);
    await run(['client', 'disable', id]);
    expect(await within(401, accounts)).toBe(401);
    expect((await ask(id, third)).status).toBe(401);
  });

  it('D1-12 D3-17: a supervisor is unlocked at once, and sessions end within a second of another password', async () => {
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
    expect(await within(401, accounts)).toBe(401);
    expect((await login('the first password')).status).toBe(401);
    expect((await login(password)).status).toBe(200);
    const stored = await rows(p).run((k) =>
      k.selectFrom('supervisors').select('password_hash').where('id', '=', ada.id),
    );
    expect(stored[0]?.password_hash).toMatch(/^\$argon2id\$/);
  });
});
