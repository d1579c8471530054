import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type CliResult, portcullis } from '../support/cli/in-process.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Portcullis, startPortcullis, usePortcullis } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';
import { startedFolder } from '../support/start/folders.ts';
import { runCli } from '../support/start/process.ts';

const PASSWORD = 'correct horse battery staple';

const CERTIFICATE = { require_certificate: true, cert_fingerprint: '0'.repeat(64) };
const LESS = { grant_types: ['client_credentials'], scopes: ['accounts:read'] };

const client = (nodeId: string, ...more: string[]) => [
  ...['client', 'create', '--node', nodeId, '--name', 'Billing', '--grants', 'client_credentials,password'],
  ...['--scopes', 'accounts:read,wallets:read', ...more],
];

describeReal('postgres', 'commands on the database of a running server', () => {
  const p = usePortcullis();
  let env: Record<string, string>;
  beforeAll(async () => {
    env = { DATA_DIR: p.dataDir, DATABASE_URL: p.env.DATABASE_URL ?? '' };
  });

  const run = (...args: string[]) => portcullis(args, env);

  async function newNode(): Promise<string> {
    const id = randomUUID();
    expect(await run('node', 'create', '--name', 'Acme', '--id', id)).toMatchObject({ code: 0, err: '' });
    return id;
  }

  const accounts = async (token: string) => (await p.call('GET', '/v1/accounts', { token })).status;

  it('D3-40: a console client is created without grants, scopes and secret', async () => {
    const nodeId = await newNode();
    const consoleClient = JSON.parse(
      (await run('client', 'create', '--node', nodeId, '--name', 'Desk', '--console', '--json')).out,
    );
    const grant_types = ['password', 'refresh_token'];
    expect(consoleClient).toMatchObject({
      name: 'Desk',
      is_console: true,
      grant_types,
      scopes: [],
      refresh_reuse_detection: true,
    });
    expect(consoleClient).not.toHaveProperty('client_secret');
  });

  it('D1-12 D3-06 D3-07: clients are created, listed, rotated and disabled; secrets are shown once; revocations reach the server', async () => {
    const nodeId = await newNode();
    const plain = await run(...client(nodeId));
    expect(plain).toMatchObject({ code: 0, err: '' });
    const shown = /^client_id {6}(?<id>\S{36})\nclient_secret {2}(?<secret>\S{43})\n.*shown only once/;
    const { id = '', secret = '' } = shown.exec(plain.out)?.groups ?? {};

    const FINGERPRINT = `AB:CD${':00'.repeat(30)}`;
    const limits = ['--requests-per-second', '5', '--requests-per-hour', '900', '--monthly-limit', '10000'];
    const guards = [
      '--allowed-ips',
      '192.0.2.7,2001:db8::/32',
      '--require-certificate',
      '--cert-fingerprint',
      FINGERPRINT,
    ];
    const rest = ['--token-duration', '60', '--no-token-expiry', '--refresh-reuse-detection', '--json'];
    const made = JSON.parse((await run(...client(nodeId.toUpperCase(), ...limits, ...guards, ...rest))).out);
    expect(made).toEqual({
      client_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      client_secret: expect.stringMatching(/^[\w-]{43}$/),
      node_id: nodeId,
      name: 'Billing',
      grant_types: ['client_credentials', 'password'],
      scopes: ['accounts:read', 'wallets:read'],
      token_expiry: { enabled: false, duration: 60 },
      allowed_ips: ['192.0.2.7', '2001:db8::/32'],
      require_certificate: true,
      cert_fingerprint: FINGERPRINT,
      rate_limit: { requests_per_second: 5, requests_per_minute: null, requests_per_hour: 900 },
      monthly_limit: 10_000,
      refresh_reuse_detection: true,
      is_console: false,
      status: 'active',
      last_used_at: null,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });

    const rotated = await run('client', 'rotate-secret', id.toUpperCase(), '--overlap', '60');
    expect(rotated.out).toMatch(shown);
    expect(rotated.out).not.toContain(secret);
    const disabled = JSON.parse((await run('client', 'disable', made.client_id, '--json')).out);
    const { client_secret: _secret, ...view } = made;
    expect(disabled).toEqual({ ...view, status: 'disabled', updated_at: expect.any(String) });

    const all = (await run('client', 'list')).out;
    expect(all.split('\n')[0]?.trim().split(/ +/)).toEqual(['CLIENT', 'NODE', 'STATUS', 'GRANTS', 'NAME']);
    for (const other of [p.demo, p.demo.other_node])
      expect(all).toContain(`${other.client.client_id}  ${other.node_id}  `);
    expect(all).toContain(`${id}  ${nodeId}  active    client_credentials,password  Billing\n`);
    expect(all).toContain(`${made.client_id}  ${nodeId}  disabled  `);
    const listed = await run('client', 'list', '--node', nodeId, '--json');
    const { clients } = JSON.parse(listed.out);
    expect(clients).toHaveLength(2);
    expect(clients.at(-1)).toEqual(disabled);
    expect(listed.out).not.toContain('secret');

    const { secret: newSecret = '' } = shown.exec(rotated.out)?.groups ?? {};
    const tokenBy = (client_secret: string) => p.clientToken({ client_id: id, client_secret });
    const tokens = [await tokenBy(secret), await tokenBy(newSecret)];
    await expect(p.clientToken(made)).rejects.toThrow('401');
    const third = JSON.parse((await run('client', 'rotate-secret', id, '--json')).out).client_secret;
    for (const former of [secret, newSecret]) {
      await vi.waitFor(() => expect(tokenBy(former)).rejects.toThrow('401'));
    }
    expect(await tokenBy(third)).toMatch(/^ey/);
    expect(await Promise.all(tokens.map(accounts))).toEqual([200, 200]);
    // As a user does, in a process of its own.
    expect(await runCli(['client', 'disable', id], env)).toMatchObject({ code: 0, stderr: '' });
    await expect.poll(() => Promise.all(tokens.map(accounts))).toEqual([401, 401]);
    await expect(tokenBy(third)).rejects.toThrow('401');
  });

  it('D1-12: a client is updated one member at a time, shown with its use and the ends of its secrets, and enabled', async () => {
    const nodeId = await newNode();
    const made = JSON.parse((await run(...client(nodeId, '--monthly-limit', '10', '--json'))).out);
    const { client_id: id, client_secret: secret, ...view } = made;
    const update = async (...flags: string[]) =>
      JSON.parse((await run('client', 'update', id, ...flags, '--json')).out);
    let expected = { client_id: id, ...view, updated_at: expect.any(String) };
    const steps: [string[], object][] = [
      [['--name', 'Renamed'], { name: 'Renamed' }],
      [['--requests-per-minute', '60'], { rate_limit: { ...view.rate_limit, requests_per_minute: 60 } }],
      [['--requests-per-minute', '0'], { rate_limit: view.rate_limit }],
      [['--allowed-ips', '127.0.0.0/8,::1'], { allowed_ips: ['127.0.0.0/8', '::1'] }],
      [['--allowed-ips', ''], { allowed_ips: [] }],
      [['--require-certificate', '--cert-fingerprint', '0'.repeat(64)], CERTIFICATE],
      [['--no-require-certificate', '--cert-fingerprint', ''], { require_certificate: false, cert_fingerprint: null }],
      [['--no-token-expiry'], { token_expiry: { enabled: false, duration: 3_600 } }],
      [['--token-expiry', '--token-duration', '60'], { token_expiry: { enabled: true, duration: 60 } }],
      [['--refresh-reuse-detection'], { refresh_reuse_detection: true }],
      [['--grants', 'client_credentials', '--scopes', 'accounts:read'], LESS],
    ];
    for (const [flags, change] of steps) {
      expected = { ...expected, ...change };
      expect(await update(...flags)).toEqual(expected);
    }
    expect(await run('client', 'update', id)).toMatchObject({
      code: 2,
      err: expect.stringContaining('nothing to change'),
    });
    expect(await run('client', 'update', id, '--monthly-limit', '-1')).toMatchObject({ code: 2 });
    expect((await run('client', 'update', id, '--name', 'Last')).out).toBe(`Client ${id} is updated.\n`);

    const token = await p.clientToken({ client_id: id, client_secret: secret });
    expect(await accounts(token)).toBe(200);
    const rotated = await run('client', 'rotate-secret', id, '--overlap', '60');
    const month = new Date().toISOString().slice(0, 7);
    await vi.waitFor(async () => {
      const shown = await run('client', 'show', id.toUpperCase(), '--json');
      expect(JSON.parse(shown.out)).toEqual({
        ...expected,
        name: 'Last',
        last_used_at: expect.any(String),
        used: { month, requests: 2 },
        secrets: [
          { created_at: expect.any(String), expires_at: expect.stringMatching(/^\d{4}-.*Z$/) },
          { created_at: expect.any(String), expires_at: null },
        ],
      });
    });
    const { out } = await run('client', 'show', id);
    expect(out).toMatch(/^client_id {16}\S{36}\nnode_id .*\nname {21}Last\ngrant_types {14}client_credentials\n/);
    expect(out).toContain('rate_limit               requests_per_second - requests_per_minute - requests_per_hour -\n');
    expect(out).toContain(`used                     month ${month} requests 2\n`);
    expect(out).toMatch(/\nsecrets {18}created_at \S+Z expires_at \S+Z, created_at \S+Z expires_at -\n/);
    for (const hidden of [secret, /client_secret {2}(\S+)/.exec(rotated.out)?.[1]]) expect(out).not.toContain(hidden);
    expect(await run('client', 'show', nodeId)).toEqual({
      code: 1,
      out: '',
      err: `portcullis: there is no client ${nodeId}\n`,
    });

    await run('client', 'disable', id);
    await expect(p.clientToken({ client_id: id, client_secret: secret })).rejects.toThrow('401');
    expect((await run('client', 'enable', id)).out).toBe(`Client ${id} is active.\n`);
    await vi.waitFor(() => p.clientToken({ client_id: id, client_secret: secret }));
    await expect.poll(() => accounts(token)).toBe(401);
  });

  it('D1-12: tenants and supervisors are listed, of one tenant or of all, in plain text that cannot control a terminal', async () => {
    const nodeId = await newNode();
    const create = ['supervisor', 'create', '--node', nodeId, '--json', '--role'];
    const ada = JSON.parse((await run(...create, 'admin', '--username', 'ada')).out);
    const grace = JSON.parse((await run(...create, 'viewer', '--username', 'grace')).out);
    await run('supervisor', 'disable', grace.id);
    const listed = await run('supervisor', 'list', '--node', nodeId);
    expect(listed.out).toBe(
      [
        `${'SUPERVISOR'.padEnd(36)}  ${'NODE'.padEnd(36)}  STATUS    ROLE      USERNAME`,
        `${ada.id}  ${nodeId}  active    admin     ada`,
        `${grace.id}  ${nodeId}  disabled  viewer    grace`,
        '',
      ].join('\n'),
    );
    const { password: _password, ...view } = ada;
    const all = JSON.parse((await run('supervisor', 'list', '--json')).out).supervisors;
    expect(all).toContainEqual(view);
    expect(all.length).toBeGreaterThan(2);
    expect(await run('supervisor', 'list', '--node', randomUUID())).toMatchObject({ code: 1, out: '' });
    await run('node', 'create', '--name', 'Red \u001b[31mBank');
    const nodes = await run('node', 'list');
    expect(nodes.out).toContain(`${nodeId}  Acme\n`);
    expect(nodes.out).toContain('  Red \\u{1b}[31mBank\n');
    expect(JSON.parse((await run('node', 'list', '--json')).out).nodes).toContainEqual({
      id: nodeId,
      name: 'Acme',
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
  });

  it('D1-12 D3-17: supervisors get a piped or a generated password; unlocking is immediate; a new password ends their sessions', async () => {
    const nodeId = await newNode();
    const create = ['supervisor', 'create', '--node', nodeId, '--role', 'viewer', '--username'];
    const piped = await runCli([...create, 'Ada', '--json'], env, `${PASSWORD}\nnot this\n`);
    expect(piped).toMatchObject({ code: 0, stderr: '' });
    const ada = JSON.parse(piped.stdout);
    expect(ada).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      node_id: nodeId,
      username: 'Ada',
      role: 'viewer',
      status: 'active',
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const made = await run(...create, 'Grace');
    const grace = /^supervisor {2}(?<id>\S{36})\nusername {4}Grace\nrole .*viewer\npassword {4}(?<password>\S{24})\n/;
    expect(made.out).toMatch(grace);
    const taken = await portcullis([...create, 'ada'], env, PASSWORD);
    expect(taken).toEqual({ code: 1, out: '', err: 'portcullis: the username is taken\n' });

    const caller = JSON.parse((await run(...client(nodeId, '--json'))).out);
    const login = (username: string, password: string) =>
      p.call('POST', '/v2/oauth/token', { json: { grant_type: 'password', ...caller, username, password } });
    for (let time = 0; time < 5; time += 1) expect((await login('ADA', 'wrong')).status).toBe(401);
    expect((await login('ADA', PASSWORD)).status).toBe(401);
    const unlocked = await run('supervisor', 'unlock', ada.id);
    expect(unlocked).toEqual({ code: 0, out: `Supervisor ${ada.id} is unlocked.\n`, err: '' });
    const { access_token: token } = (await login('ADA', PASSWORD)).json;
    expect(await accounts(token)).toBe(200);

    const set = JSON.parse((await run('supervisor', 'set-password', ada.id, '--json')).out);
    expect(set).toEqual({ ...ada, updated_at: expect.any(String), password: expect.stringMatching(/^[\w-]{24}$/) });
    await expect.poll(() => accounts(token)).toBe(401);
    expect((await login('ada', PASSWORD)).status).toBe(401);
    expect((await login('ada', set.password)).status).toBe(200);
    const { id = '', password = '' } = grace.exec(made.out)?.groups ?? {};
    expect((await run('supervisor', 'disable', id)).out).toBe(`Supervisor ${id} is disabled.\n`);
    expect((await run('supervisor', 'enable', id)).out).toBe(`Supervisor ${id} is active.\n`);
    expect((await run('supervisor', 'disable', id)).out).toBe(`Supervisor ${id} is disabled.\n`);
    expect((await login('grace', password)).status).toBe(401);
  });

  it('D1-12 D3-26: the last active admin of a node cannot be disabled', async () => {
    const create = ['supervisor', 'create', '--role', 'admin', '--node', await newNode(), '--json', '--username'];
    const [ada, grace] = [await run(...create, 'ada'), await run(...create, 'grace')].map(({ out }) => JSON.parse(out));
    expect(await run('supervisor', 'disable', grace.id)).toMatchObject({ code: 0 });
    expect(await run('supervisor', 'disable', ada.id)).toEqual({
      code: 1,
      out: '',
      err: 'portcullis: the last active admin of a tenant cannot be disabled or get another role\n',
    });
  });
});

describe('commands on an embedded database, before its server starts', () => {
  const folder = beforeTests(startedFolder);
  let server: Portcullis;
  // Without the PORT of the server: a command runs in another shell.
  let env: { DATA_DIR: string };
  let made: CliResult;
  beforeAll(async () => {
    env = { DATA_DIR: folder.path };
    const { node_id: node } = JSON.parse(await readFile(join(folder.path, 'demo.json'), 'utf8'));
    const create = ['supervisor', 'create', '--node', node, '--role', 'viewer', '--json'];
    made = await portcullis([...create, '--name', 'Ada'], env, PASSWORD);
    server = await startPortcullis({ dataDir: folder.path });
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  it('D1-12: a supervisor created with --name can log in with that name once the server starts', async () => {
    expect(JSON.parse(made.out)).toMatchObject({ username: 'Ada', role: 'viewer' });
    const json = { grant_type: 'password', ...server.demo.client, username: 'ada', password: PASSWORD };
    expect((await server.call('POST', '/v2/oauth/token', { json })).status).toBe(200);
  });
});
