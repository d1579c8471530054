import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { realDatabase } from '../support/harness/databases.ts';
import { startPortcullis } from '../support/harness.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder, migratedFolder, refusalOf, startedFolder } from '../support/start/folders.ts';
import { type Ended, spawnInstance, type Variables } from '../support/start/process.ts';

const STACK = /\n\s+at /;

function faultsOf({ stderr }: Ended): string[] {
  return stderr.split('\n').flatMap((line) => (line.startsWith('  - ') ? [line.slice(4)] : []));
}

async function refusal(variables: Variables): Promise<Ended> {
  await using folder = await emptyFolder();
  await using instance = spawnInstance({ DATA_DIR: folder.path, ...variables });
  return await instance.ended;
}

it('D1-04, D1-14: malformed variables end the start with 78 and one message that lists all of them', async () => {
  const ended = await refusal({
    PORT: 'http',
    ADMIN_PORT: '70000',
    PUBLIC_URL: 'portcullis.example',
    DATABASE_URL: 'mysql://db',
    REDIS_URL: 'http://cache',
    KAFKA_BROKERS: 'one,two:9092',
    KAFKA_SASL_USERNAME: 'me',
    JWT_SECRET_USER: 'short',
    MAX_SESSIONS: '0',
    TRUST_PROXY: '300.1.1.1',
    CORS_ORIGINS: 'app.example',
    LOG_LEVEL: 'loud',
    PORTCULLIS_ROLE: 'boss',
  });
  expect(ended.code).toBe(78);
  expect(ended.stdout).toBe('');
  expect(ended.stderr).not.toMatch(STACK);
  expect(faultsOf(ended).map((fault) => fault.split(' ')[0])).toEqual([
    'PORTCULLIS_ROLE',
    'PORT',
    'ADMIN_PORT',
    'PUBLIC_URL',
    'TRUST_PROXY',
    'CORS_ORIGINS',
    'LOG_LEVEL',
    'DATABASE_URL',
    'REDIS_URL',
    'KAFKA_BROKERS',
    'JWT_SECRET_USER',
    'MAX_SESSIONS',
    'KAFKA_SASL_MECHANISM,',
  ]);
  for (const value of ['mysql', 'short', 'boss']) expect(ended.stderr).not.toContain(value);
});

it('D1-04: in production all missing variables are listed together with malformed ones', async () => {
  await using folder = await emptyFolder();
  const env = { NODE_ENV: 'production', PORT: 'http', REDIS_URL: '', WEBHOOK_USERNAME: 'chain' };
  const told = await refusalOf(folder.path, env);
  expect(told?.split('\n')).toEqual([
    'PORT must be a port number, 0 to 65535',
    ...[
      'PUBLIC_URL',
      'DATABASE_URL',
      'REDIS_URL',
      'KAFKA_BROKERS',
      'JWT_SECRET_USER',
      'JWT_SECRET_DISCOVER',
      'JWT_SECRET_LEGACY',
      'SECRET_PEPPER',
      'WEBHOOK_PASSWORD',
    ].map((name) => `${name} is missing: production requires it`),
  ]);
});

it('D1-14: a missing or invalid gateway.yaml ends the start with 78, and the file, line and field', async () => {
  await using folder = await emptyFolder();
  const absent = await refusal({ GATEWAY_CONFIG: join(folder.path, 'absent.yaml') });
  expect(absent.code).toBe(78);
  expect(absent.stderr).not.toMatch(STACK);
  expect(faultsOf(absent)).toEqual([
    expect.stringMatching(/^GATEWAY_CONFIG: .*absent\.yaml cannot be read \(ENOENT\)/),
  ]);
  const wrong = join(folder.path, 'wrong.yaml');
  await writeFile(
    wrong,
    [
      'services: {here: local}',
      'webhook_alias: {deprecated_at: 2026-01-01T00:00:00Z, sunset: 2027-01-01T00:00:00Z}',
      'endpoints:',
      '  - {methods: [GET], path: /a, services: [there]}',
    ].join('\n'),
  );
  expect(await refusalOf(folder.path, { GATEWAY_CONFIG: wrong })).toBe(
    `${wrong}:4: endpoints.0.services: "there" is not under services`,
  );
});

it('D1-07, D1-14: a second process on DATA_DIR exits with 1 and says that the folder is in use', async () => {
  await using folder = await startedFolder();
  await using first = await startPortcullis({ dataDir: folder.path });
  await using second = spawnInstance({ DATA_DIR: folder.path });
  const ended = await second.ended;
  expect(ended.code).toBe(1);
  expect(ended.stdout).toBe('');
  expect(ended.stderr).toBe(
    `Portcullis cannot start: another Portcullis is running on ${folder.path}: stop it, or set a different DATA_DIR for this one\n`,
  );
  expect((await first.call('GET', '/health')).status).toBe(200);
});

describeReal('postgres', 'a port in use', () => {
  it.each(['PORT', 'ADMIN_PORT'])(
    'D1-14: %s in use ends the start, and the message names the variable',
    async (variable) => {
      await using folder = await emptyFolder();
      await using database = await realDatabase();
      const [port = 0] = await freePorts(1);
      await using taken = createServer().listen(port, '127.0.0.1');
      expect(await refusalOf(folder.path, { DATABASE_URL: database.url, [variable]: String(port) })).toBe(
        `port ${port} of 127.0.0.1 is in use: stop its owner, or set ${variable}`,
      );
      expect(taken.listening).toBe(true);
    },
  );
});

it.each([
  ['DATABASE_URL', (port: number) => `postgres://user:hidden@127.0.0.1:${port}/rows`, 'the database at'],
  ['KAFKA_BROKERS', (port: number) => `127.0.0.1:${port}`, 'Kafka at'],
])(
  'D1-14: a %s where no server listens ends the start with one sentence, without the password',
  async (variable, address, subject) => {
    await using folder = await migratedFolder();
    const [port = 0] = await freePorts(1);
    const told = await refusalOf(folder.path, { [variable]: address(port) });
    expect(told).not.toMatch(/hidden|\n/);
    expect(told).toContain(`${subject} 127.0.0.1:${port} `);
  },
);

it('an unreachable Redis degrades the instance and does not prevent its start', async () => {
  const [port = 0] = await freePorts(1);
  await using p = await startPortcullis({ env: { REDIS_URL: `redis://127.0.0.1:${port}` } });
  expect((await p.call('GET', '/health')).json).toMatchObject({
    status: 'degraded',
    checks: { database: 'ok', cache: 'down' },
  });
});

it('unusable folders are named, without a stack trace', async () => {
  await using folder = await migratedFolder();
  const file = join(folder.path, 'file');
  await writeFile(file, '');
  expect(await refusalOf(file)).toBe(`DATA_DIR: ${file} cannot be used (EEXIST); set it to a writable folder`);
  expect(await refusalOf('/proc/portcullis')).toMatch(/^DATA_DIR: \/proc\/portcullis cannot be used \(\w+\); set it/);
  expect(await refusalOf(folder.path, { AUDIT_SPOOL_DIR: file })).toMatch(`${file} cannot be used (EEXIST)`);
});

it('damaged secrets are never replaced', async () => {
  await using folder = await emptyFolder();
  await mkdir(folder.path, { recursive: true });
  const path = join(folder.path, 'secrets.json');
  const half = '{"jwtUser": "half';
  await writeFile(path, half);
  await chmod(path, 0o600);
  expect(await refusalOf(folder.path)).toBe(
    `DATA_DIR ${folder.path} is incomplete or damaged: secrets.json is damaged. Restore it from a backup, or set another DATA_DIR`,
  );
  expect(await readFile(path, 'utf8')).toBe(half);
});
