import { execFile } from 'node:child_process';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createClient } from 'redis';
import { expect, it } from 'vitest';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { blocksOf } from '../support/docs/markdown.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { createTopics, deleteTopics, freshRedis, topicPrefix } from '../support/services/isolation.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { ROOT, type Running, startInstance, type Variables } from '../support/start/process.ts';

const PAGE = 'docs/operations/restore.md';
const WARNING = 'the database is older than the last one that Redis knows';
const NODE = '0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d';
const PASSWORD = 'correct horse battery staple';

/** The commands of the page that begin with a program, in its order. */
function blocksOfPage(program: 'bin/portcullis' | 'jq'): string[] {
  return blocksOf(PAGE).flatMap(({ lang, text }) =>
    lang === 'sh' && text.trimStart().startsWith(program) ? [text] : [],
  );
}

/** Runs a block of the page in a folder that has the program, as the operator does. */
async function follow(block: string, env: Variables, folder: string, instead: Readonly<Record<string, string>>) {
  const script = Object.entries(instead).reduce((text, [from, to]) => text.replaceAll(from, to), block);
  const { PATH = '', HOME = '' } = process.env;
  const run = promisify(execFile);
  return run('bash', ['-euo', 'pipefail', '-c', script], { cwd: folder, env: { PATH, HOME, ...env } });
}

/** Calls an endpoint of an instance and returns its status and its document. */
async function post({ baseUrl }: Running, path: string, body: object, token?: string) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  const response = await fetch(baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  const correlationId = response.headers.get('x-correlation-id');
  return { status: response.status, correlationId, json: text === '' ? undefined : JSON.parse(text) };
}

/** Ends an instance and returns what it has logged. */
async function logOf(instance: Running): Promise<string> {
  return (await instance.kill('SIGTERM')).stdout;
}

/** How many audit records the database has had, as far as Redis knows. */
async function remembered(url: string, prefix: string): Promise<number> {
  const redis = await createClient({ url }).connect();
  try {
    return Number((await redis.get(`${prefix}position`))?.split('/')[1] ?? 0);
  } finally {
    redis.destroy();
  }
}

describeReal(['postgres', 'redis', 'kafka'], 'a backup restored by following the documentation', () => {
  it('D6-18 D3-23 D7-09: revoked access stays revoked, and a start without recover warns', async () => {
    await using stack = new AsyncDisposableStack();
    const folder = stack.use(await emptyFolder()).path;
    const database = stack.use(await realDatabase());
    const redis = stack.use(await freshRedis());
    const [brokers, prefix] = [serviceAddress('kafka'), topicPrefix()];
    await createTopics(brokers, prefix, ALL_TOPICS);
    stack.defer(() => deleteTopics(brokers, prefix));
    const env = {
      ...{ DATABASE_URL: database.url, REDIS_URL: redis.url, KAFKA_BROKERS: brokers, TOPIC_PREFIX: prefix },
      DATA_DIR: join(folder, 'data'),
    };
    await symlink(join(ROOT, 'bin'), join(folder, 'bin'));
    const run = async (args: readonly string[], line?: string) => {
      const { code, out, err } = await portcullis(args, env, line);
      expect({ args, code, err }).toEqual({ args, code: 0, err: expect.any(String) });
      return args.includes('--json') ? JSON.parse(out) : out;
    };

    await run(['node', 'create', '--name', 'Acme', '--id', NODE]);
    const grants = ['--grants', 'password,client_credentials,refresh_token', '--json'];
    const client = await run([
      'client',
      'create',
      '--node',
      NODE,
      '--name',
      'Disabled later',
      ...grants,
      '--scopes',
      'accounts:read',
    ]);
    const erasing = ['--scopes', 'accounts:read,users:erase'];
    const other = await run(['client', 'create', '--node', NODE, '--name', 'Console', ...grants, ...erasing]);
    const people = ['supervisor', 'create', '--node', NODE, '--json'];
    await run([...people, '--username', 'boss', '--role', 'admin'], PASSWORD);
    const person = await run([...people, '--username', 'grace', '--role', 'viewer'], PASSWORD);
    await writeFile(join(folder, 'users.csv'), 'wallet_address,email\n0xd0c1,erased@restore.example\n');
    await run(['users', 'import', join(folder, 'users.csv'), '--node', NODE]);
    const users = async () =>
      (await withPostgres(database.url, (pg) => pg.query('select id, email from users'))).rows as {
        id: string;
        email: string | null;
      }[];
    const [user] = await users();

    const first = stack.use(await startInstance(env));
    const credentials = ({ client_id, client_secret }: Record<string, string>) => ({ client_id, client_secret });
    const login = (at: Running, username: string) =>
      post(at, '/v2/oauth/token', { grant_type: 'password', ...credentials(other), username, password: PASSWORD });
    const machine = (at: Running) =>
      post(at, '/v2/oauth/token', { grant_type: 'client_credentials', ...credentials(client) });
    const opens = async (at: Running, token: string) =>
      (await post(at, '/graphql', { query: '{ me { nodeId } }' }, token)).status;
    const session = (await login(first, 'grace')).json;
    const issued = (await machine(first)).json;
    expect([await opens(first, session.access_token), await opens(first, issued.access_token)]).toEqual([200, 200]);
    expect(await logOf(first)).not.toContain(WARNING);

    // The backup has the session and the client's tokens; what ends them comes later.
    const backup = `${new URL(database.url).pathname.slice(1)}_backup`;
    const admin = Object.assign(new URL(database.url), { pathname: '/postgres' }).href;
    const name = backup.replace(/_backup$/, '');
    const copy = (from: string, to: string) =>
      withPostgres(admin, async (pg) => {
        await pg.query(`drop database if exists "${to}" with (force)`);
        await pg.query(`create database "${to}" template "${from}"`);
      });
    await copy(name, backup);
    stack.defer(() =>
      withPostgres(admin, (pg) => pg.query(`drop database if exists "${backup}" with (force)`)).then(() => undefined),
    );
    const backupTime = new Date().toISOString();
    const [counted] = await withPostgres(database.url, (pg) => pg.query('select last_value from audit_positions')).then(
      ({ rows }) => rows as { last_value: string }[],
    );
    const second = stack.use(await startInstance(env));
    expect(
      (await post(second, '/v2/oauth/revoke', { ...credentials(other), token: session.refresh_token })).status,
    ).toBe(200);
    expect(await opens(second, session.access_token)).toBe(401);
    await run(['client', 'disable', client.client_id]);
    await run(['supervisor', 'disable', person.id]);
    const { access_token } = (
      await post(second, '/v2/oauth/token', { grant_type: 'client_credentials', ...credentials(other) })
    ).json;
    const query = `mutation { eraseUser(id: "${user?.id}") { __typename } }`;
    const erasure = await post(second, '/graphql', { query }, access_token);
    expect(erasure.json).toEqual({ data: { eraseUser: { __typename: 'User' } } });
    expect((await machine(second)).status).toBe(401);
    expect((await users())[0]?.email).not.toBe(user?.email);
    await expect.poll(() => remembered(redis.url, prefix)).toBeGreaterThan(Number(counted?.last_value));
    const lost = await logOf(second);
    expect(lost).not.toContain(WARNING);
    await writeFile(join(folder, 'gateway.log'), lost);
    const [filter = ''] = blocksOfPage('jq');
    const selected = (await follow(filter, env, folder, {})).stdout;
    expect(selected).toContain(erasure.correlationId);
    expect(selected).not.toMatch(/"method": "GET"|"status": 4/);

    await copy(backup, name);
    expect((await users())[0]?.email).toBe(user?.email);
    const early = stack.use(await startInstance(env));
    // What the page prevents: everything that was ended is good again.
    expect([await opens(early, issued.access_token), (await machine(early)).status]).toEqual([200, 200]);
    expect(await logOf(early)).toContain(WARNING);

    await copy(backup, name);
    const instead = {
      BACKUP_TIME: backupTime,
      CLIENT_ID: client.client_id,
      SUPERVISOR_ID: person.id,
      USER_ID: user?.id ?? '',
    };
    const blocks = blocksOfPage('bin/portcullis');
    expect(blocks).toHaveLength(2);
    for (const block of blocks) {
      for (;;) {
        const failed = await follow(block, env, folder, instead).then(
          () => undefined,
          (error: Error & { stderr: string }) => error.stderr,
        );
        if (failed === undefined) break;
        // The broker forgets the members of a group some seconds after they have left.
        expect(failed).toContain('consumers are running in');
        await new Promise((later) => setTimeout(later, 1_000));
      }
    }
    const last = stack.use(await startInstance(env));
    expect(await opens(last, session.access_token)).toBe(401);
    expect(await opens(last, issued.access_token)).toBe(401);
    const renewal = { grant_type: 'refresh_token', ...credentials(other), refresh_token: session.refresh_token };
    expect((await post(last, '/v2/oauth/token', renewal)).status).toBe(401);
    expect((await machine(last)).status).toBe(401);
    expect((await login(last, 'grace')).status).toBe(401);
    expect((await login(last, 'boss')).status).toBe(200);
    expect((await users())[0]?.email).not.toBe(user?.email);
    expect(await logOf(last)).not.toContain(WARNING);
  }, 600_000);
});
