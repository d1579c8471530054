import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { instanceSocket } from '../../src/platform/database/instance-link.ts';
import { lockDataDir } from '../../src/platform/embedded/data-dir-lock.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { emptyFolder, startedFolder } from '../support/start/folders.ts';
import {
  printed,
  type Running,
  spawnProgram,
  startInstance,
  startProgram,
  type Variables,
} from '../support/start/process.ts';

const PASSWORD = 'correct horse battery staple';

/** Runs `bin/portcullis` to its end, which must be a success, and returns the document that it prints. */
async function document(variables: Variables, args: readonly string[], input = '') {
  const { code, stdout, stderr } = await spawnProgram([...args, '--json'], variables, input).ended;
  // An import says that it has started.
  expect({ args, code, stderr }).toEqual({
    args,
    code: 0,
    stderr: expect.stringMatching(/^(?:Migration \S+ has started\.\n)?$/),
  });
  return JSON.parse(stdout);
}

describe('commands beside a running embedded instance', () => {
  const folder = beforeTests(startedFolder);
  let instance: Running;
  let env: Variables;
  let demo: { node_id: string; client: { client_id: string }; user_id: string };
  beforeAll(async () => {
    env = { DATA_DIR: folder.path };
    instance = await startInstance(env);
    demo = JSON.parse(await readFile(join(folder.path, 'demo.json'), 'utf8'));
  });
  afterAll(async () => {
    await instance?.[Symbol.asyncDispose]();
  });

  /** Runs a command in this process, which is not the instance's either, and returns the document that it prints. */
  async function run(args: readonly string[], line?: string) {
    const { code, out, err } = await portcullis([...args, '--json'], env, line);
    expect({ args, code, err }).toEqual({ args, code: 0, err: expect.stringMatching(/^(?:Migration .*\n)?$/) });
    return JSON.parse(out);
  }

  /** Requests a token of the instance, and returns the status. */
  async function signIn(body: object): Promise<number> {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(`${instance.baseUrl}/v2/oauth/token`, { method: 'POST', headers, body: JSON.stringify(body) }))
      .status;
  }

  it('D8-20 D8-21: clients and supervisors are changed, the instance follows, and each record names the user of the system', async () => {
    const node = demo.node_id;
    const create = ['client', 'create', '--node', node, '--name', 'Beside', '--grants', 'client_credentials,password'];
    const client = await run([...create, '--scopes', 'accounts:read']);
    const id: string = client.client_id;
    const credentials = { client_id: id, client_secret: client.client_secret };
    expect(await signIn({ grant_type: 'client_credentials', ...credentials })).toBe(200);
    expect((await run(['client', 'list', '--node', node])).clients).toContainEqual(
      expect.objectContaining({ client_id: id, name: 'Beside' }),
    );
    expect(await run(['client', 'update', id, '--monthly-limit', '100'])).toMatchObject({ monthly_limit: 100 });
    expect(await run(['client', 'show', id])).toMatchObject({ name: 'Beside', monthly_limit: 100 });

    const supervisor = ['supervisor', 'create', '--node', node, '--username', 'grace', '--role', 'viewer'];
    const grace = await run(supervisor, PASSWORD);
    const login = { grant_type: 'password', ...credentials, username: 'grace', password: PASSWORD };
    expect(await signIn(login)).toBe(200);
    expect(await run(['supervisor', 'disable', grace.id])).toMatchObject({ status: 'disabled' });
    await expect.poll(() => signIn(login)).toBe(401);
    expect(await run(['supervisor', 'enable', grace.id])).toMatchObject({ status: 'active' });
    await expect.poll(() => signIn(login)).toBe(200);
    expect(await run(['client', 'disable', id])).toMatchObject({ status: 'disabled' });
    await expect.poll(() => signIn({ grant_type: 'client_credentials', ...credentials })).toBe(401);
    await run(['users', 'erase', demo.user_id]);

    const { records } = await run(['audit', 'list', '--method', 'CLI', '--node', node]);
    const by = { subject: userInfo().username, status_code: 202 };
    expect(
      records.map(({ path, request_body }: Record<string, string>) => [path, JSON.parse(request_body ?? '')]),
    ).toEqual([
      ['client create', { node, name: 'Beside', grants: 'client_credentials,password', scopes: 'accounts:read' }],
      ['client update', { id, 'monthly-limit': '100' }],
      ['supervisor create', { node, username: 'grace', role: 'viewer' }],
      ['supervisor disable', { id: grace.id }],
      ['supervisor enable', { id: grace.id }],
      ['client disable', { id }],
      ['users erase', { id: demo.user_id }],
    ]);
    for (const record of records) expect(record).toMatchObject(by);
    expect(JSON.stringify(records)).not.toContain(PASSWORD);
    expect(await run(['audit', 'verify'])).toMatchObject({ findings: [] });
  });

  it('D8-20: commands that read, import and replay work, those that need a file or standard input too', async () => {
    const node = (await run(['node', 'create', '--name', 'New'])).id;
    expect((await run(['node', 'list'])).nodes).toContainEqual(expect.objectContaining({ id: node, name: 'New' }));
    const commands = [
      ['status'],
      ['dead-letters', 'list'],
      ['transactions', 'replay', '--dlq'],
      ['migrate'],
      ['clashes'],
    ];
    expect(await Promise.all(commands.map((args) => run(args)))).toMatchObject([
      { findings: [], processes: [{ role: 'all' }] },
      { dead_letters: [] },
      { replayed: 0 },
      { migrations: [] },
      { clashes: [] },
    ]);
    const csv = 'wallet_address,email\n0x1,grace@example.com\n';
    const file = join(folder.path, 'users.csv');
    await writeFile(file, csv);
    expect(await run(['users', 'import', file, '--node', node])).toMatchObject({ success: 1, failed: 0 });
    expect(await document(env, ['users', 'import', '-', '--node', node], csv)).toMatchObject({ skipped: 1, failed: 0 });
    const line = JSON.stringify({ topic: 'reference.nodes', key: node, value: { version: 2, name: 'Renamed' } });
    const lines = join(folder.path, 'nodes.ndjson');
    await writeFile(lines, `${line}\n`);
    expect(await run(['reference', 'load', lines])).toMatchObject({ applied: 1, rejected: 0 });
    const out = join(folder.path, 'export');
    expect(await run(['audit', 'export', '--out', out])).toMatchObject({ verification: { findings: 0 } });
  });

  it.each([
    [['recover', '--since', '2026-11-21T10:29:50Z'], 'stop it first, because it must not apply events meanwhile'],
    [['seed'], 'there is nothing to do, since it added the demo'],
  ])('D8-20: %j is refused with the reason', async (args, reason) => {
    const { code, out, err } = await portcullis(args, env);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toBe(`portcullis: another Portcullis is running on ${folder.path}: ${reason}\n`);
  });

  it('D8-20: only the owner can open the socket, in a folder that only the owner can enter', async () => {
    const path = instanceSocket(folder.path);
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it.skipIf(process.getuid?.() !== 0)('D8-20: another user of the system cannot connect', async () => {
    await chmod(folder.path, 0o755);
    const script = `require('node:net').connect(${JSON.stringify(instanceSocket(folder.path))}).on('connect', () => process.exit(0)).on('error', ({ code }) => { console.log(code); process.exit(3) })`;
    const connecting = (uid: number) =>
      spawnSync('/proc/self/exe', ['-e', script], { uid, argv0: 'node', encoding: 'utf8' });
    expect(connecting(0)).toMatchObject({ status: 0 });
    expect(connecting(65_534)).toMatchObject({ status: 3, stdout: 'EACCES\n' });
  });

  it('D8-20: a command that leaves in a transaction changes nothing and holds nothing up', async () => {
    const { send } = await import('../../src/platform/database/instance-link.ts');
    const socket = connect(instanceSocket(folder.path));
    await once(socket, 'connect');
    send(socket, { sql: 'begin', parameters: [] });
    send(socket, { sql: `update nodes set name = $1 where id = $2`, parameters: ['Lost', demo.node_id] });
    await once(socket, 'data');
    socket.destroy();
    const { nodes } = await run(['node', 'list']);
    expect(nodes).not.toContainEqual(expect.objectContaining({ name: 'Lost' }));
    expect((await fetch(`${instance.baseUrl}/health`)).status).toBe(200);
  });

  it('D8-20: bytes that no command sends end only their connection', async () => {
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\n\n', `${'A'.repeat(70_000)}\n`, '{}\n']) {
      const socket = connect(instanceSocket(folder.path));
      socket.on('error', () => undefined).resume();
      socket.end(bytes);
      await once(socket, 'close');
    }
    expect((await run(['node', 'list'])).nodes.length).toBeGreaterThan(0);
  });

  it('D8-20: a command that runs while the instance stops ends with a sentence, and does not delay the stop', async () => {
    await using command = spawnProgram(['audit', 'list', '--since', '1h', '--follow', '--method', 'CLI'], env);
    await run(['client', 'enable', demo.client.client_id]);
    await printed(command, /client enable/);
    expect(await instance.kill('SIGTERM')).toMatchObject({ code: 0 });
    expect(await command.ended).toMatchObject({ code: 1, stderr: noAnswer(folder.path) });
  });
});

const noAnswer = (dataDir: string) =>
  `portcullis: no instance answers on ${dataDir}: it starts or stops, or another command uses the folder. Repeat this in a moment\n`;

describe('the socket of an embedded instance', () => {
  it('D8-20: the path of DATA_DIR may be longer than that of a socket; nothing is left of the way around', async () => {
    await using folder = await emptyFolder();
    await using started = await startedFolder();
    const [parent, TMPDIR] = [join(folder.path, 'd'.repeat(90)), join(folder.path, 'tmp')];
    const long = join(parent, 'd'.repeat(90));
    for (const path of [TMPDIR, parent]) await mkdir(path);
    await rename(started.path, long);
    const env = { DATA_DIR: long, TMPDIR };
    await using instance = await startProgram(env);
    expect(await document(env, ['node', 'list'])).toMatchObject({ nodes: expect.any(Array) });
    expect(readdirSync(TMPDIR).filter((name) => name.startsWith('portcullis'))).toEqual([]);
    expect(await instance.kill('SIGTERM')).toMatchObject({ code: 0 });
    expect(existsSync(instanceSocket(long))).toBe(false);
  });

  it('D8-20: after kill -9 the socket that is left hinders neither a command nor the next start', async () => {
    await using folder = await startedFolder();
    const env = { DATA_DIR: folder.path };
    await using first = await startInstance(env);
    await first.kill('SIGKILL');
    expect(existsSync(instanceSocket(folder.path))).toBe(true);
    const made = await portcullis(['node', 'create', '--name', 'Between', '--json'], env);
    expect(made).toMatchObject({ code: 0, err: '' });
    await using _second = await startPortcullis({ dataDir: folder.path });
    const { nodes } = JSON.parse((await portcullis(['node', 'list', '--json'], env)).out);
    expect(nodes).toContainEqual(expect.objectContaining(JSON.parse(made.out)));
  });

  it('D8-20: while a process has DATA_DIR and does not listen, a command says so', async () => {
    await using folder = await startedFolder();
    using lock = lockDataDir(folder.path);
    expect(lock).toBeDefined();
    const { code, err } = await portcullis(['node', 'list'], { DATA_DIR: folder.path });
    expect({ code, err }).toEqual({
      code: 1,
      err: noAnswer(folder.path),
    });
  });
});
