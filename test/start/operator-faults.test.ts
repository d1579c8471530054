import { randomUUID } from 'node:crypto';
import { chmod, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { thoroughly } from '../support/harness/in-turn.ts';
import { startPortcullis } from '../support/harness.ts';
import { createTopics, deleteTopics, freshDatabase, freshRedis, topicPrefix } from '../support/services/isolation.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { emptyFolder, migratedFolder, refusalOf, refusedStart } from '../support/start/folders.ts';
import { type Ended, spawnInstance, type Variables } from '../support/start/process.ts';

const LONG = 'x'.repeat(32);
const PRODUCTION = {
  NODE_ENV: 'production',
  HOST: '127.0.0.1',
  PUBLIC_URL: 'https://portcullis.example',
  JWT_SECRET_USER: `${LONG}1`,
  JWT_SECRET_DISCOVER: `${LONG}2`,
  JWT_SECRET_LEGACY: `${LONG}3`,
  SECRET_PEPPER: LONG,
  WEBHOOK_USERNAME: 'chain',
  WEBHOOK_PASSWORD: 'the password of the chain',
};

/** Matches a stack trace, also as the member of a line of the log. */
const STACK = /(?:^|\n|\\n)\s+at /;

/** Checks that what ended a process has no stack trace. A warning may have one: a store that is slow for a moment ends nothing. */
function expectPlain({ stdout, stderr }: Pick<Ended, 'stdout' | 'stderr'>): void {
  expect(stderr).not.toMatch(STACK);
  for (const line of stdout.split('\n')) if (!line.startsWith('{"level":"warn"')) expect(line).not.toMatch(STACK);
}

/** Runs a command in this process: test/cli/process.test.ts has what is of a process of its own. */
async function commandOn(env: Variables, command: readonly string[]) {
  const { code, out, err } = await portcullis(command, env);
  return { code, stdout: out, stderr: err };
}

async function startedProcess(env: Variables): Promise<Pick<Ended, 'code' | 'stdout' | 'stderr'>> {
  await using instance = spawnInstance(env);
  return await instance.ended;
}

async function startedHere(env: Variables) {
  const refused = await refusedStart(env.DATA_DIR ?? '', env);
  if (refused === undefined) throw new Error('it starts');
  return refused;
}

/**
 * Starts what does not run, and a command on the same stores. Neither prints where in the program it failed. A quick run
 * starts a process once for each way of ending, and the others in this process.
 */
async function refusals(
  variables: Variables,
  { command = ['client', 'list'], isProcess = false }: { command?: readonly string[]; isProcess?: boolean } = {},
) {
  await using folder = await emptyFolder();
  const env = { DATA_DIR: folder.path, ...variables };
  const started = await (isProcess || inject('isThorough') ? startedProcess : startedHere)(env);
  const commanded = await commandOn(env, command);
  expectPlain(started);
  expectPlain(commanded);
  return { started, commanded };
}

describe('a start with an error that the operator can fix', () => {
  it.each([
    ['PORT and ADMIN_PORT equal', { PORT: '4100', ADMIN_PORT: '4100' }, 'both are 4100'],
    ['PORT equal to the default of ADMIN_PORT', { PORT: '4001', ADMIN_PORT: '' }, 'both are 4001'],
    ['ADMIN_PORT equal to the default of PORT', { PORT: '', ADMIN_PORT: '4000' }, 'both are 4000'],
    ['both on every address', { HOST: '0.0.0.0', PORT: '4100', ADMIN_PORT: '4100' }, 'both are 4100'],
  ])('D1-04 D1-14: a start with %s exits with 78 before it listens', async (name, variables, message) => {
    const isProcess = name.startsWith('PORT and');
    const { started, commanded } = await refusals(variables, { command: ['config', 'check'], isProcess });
    expect(started).toMatchObject({ code: 78, stdout: '', stderr: expect.stringContaining(message) });
    expect(commanded).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
  });

  it('D1-04: a worker, which has one listener, may use the default PORT for it', async () => {
    const stores = {
      DATABASE_URL: 'postgres://127.0.0.1/rows',
      REDIS_URL: 'redis://127.0.0.1',
      KAFKA_BROKERS: 'a:9092',
    };
    const env = { PORTCULLIS_ROLE: 'worker', ...stores, ADMIN_PORT: '4000' };
    const { code, stdout } = await commandOn(env, ['config', 'check']);
    expect({ code, hasPort: stdout.includes('4000') }).toEqual({ code: 0, hasPort: true });
  });

  it('D1-14: a start with an unreadable gateway.yaml names the file', async () => {
    const { started } = await refusals({ GATEWAY_CONFIG: '/proc/self/mem' });
    expect(started).toMatchObject({ code: 78, stderr: expect.stringContaining('/proc/self/mem') });
  });

  // In a quick run test/start/refusals.test.ts has the start, and test/cli/beside-instance.test.ts the command.
  thoroughly('D1-07 D1-14 D8-20: with a DATA_DIR in use, a start names the folder, and a command works', async () => {
    await using folder = await migratedFolder();
    await using _running = await startPortcullis({ dataDir: folder.path });
    const { started, commanded } = await refusals({ DATA_DIR: folder.path });
    expect([started.code, started.stderr]).toEqual([1, expect.stringContaining(folder.path)]);
    expect([commanded.code, commanded.stderr]).toEqual([0, '']);
  });

  it.each([
    ['below a file', '/etc/hostname/data'],
    ['where no folder can be created', '/proc/portcullis/data'],
  ])('D1-14: with a DATA_DIR %s, a start and a command name the folder', async (_name, dataDir) => {
    const { started, commanded } = await refusals({ DATA_DIR: dataDir });
    expect(started).toMatchObject({ code: 78, stderr: expect.stringContaining(`DATA_DIR: ${dataDir} cannot be used`) });
    expect(commanded).toMatchObject({ code: 1, stderr: expect.stringContaining(`no database in DATA_DIR ${dataDir}`) });
  });

  it('D1-14: a start with an unusable secret file names its variable', async () => {
    await using folder = await migratedFolder();
    const file = join(folder.path, 'secret');
    await writeFile(file, LONG);
    await chmod(file, 0o644);
    const { started } = await refusals({ DATA_DIR: folder.path, SECRET_PEPPER_FILE: join(file, 'none') });
    expect(started).toMatchObject({ code: 78, stderr: expect.stringContaining('SECRET_PEPPER_FILE') });
  });

  it('D1-14: with unreachable stores, a start and a command name their address, without the password', async () => {
    const [port = 0] = await freePorts(1);
    const database = { DATABASE_URL: `postgres://me:hidden@127.0.0.1:${port}/rows` };
    const { started, commanded } = await refusals(database, { isProcess: true });
    for (const { code, stderr } of [started, commanded]) {
      expect([code, stderr]).toEqual([1, expect.stringContaining(`127.0.0.1:${port} does not respond`)]);
      expect(stderr).not.toContain('hidden');
    }
  });

  // In a quick run test/start/refusals.test.ts has the start, and test/cli/transactions-replay-ended.test.ts the command.
  thoroughly('D1-14: with an unreachable Kafka, a start and a command name its address', async () => {
    const [port = 0] = await freePorts(1);
    await using folder = await migratedFolder();
    const brokers = `127.0.0.1:${port}`;
    const env = { DATA_DIR: folder.path, KAFKA_BROKERS: brokers };
    const { started, commanded } = await refusals(env, { command: ['transactions', 'replay', '--dlq'] });
    for (const { code, stderr } of [started, commanded])
      expect([code, stderr]).toEqual([1, expect.stringContaining(brokers)]);
  });
});

describeReal(['postgres', 'redis', 'kafka'], 'a start on stores with an error that the operator can fix', () => {
  const prefix = topicPrefix();
  const stack = new AsyncDisposableStack();
  let stores: Variables;
  beforeAll(async () => {
    const brokers = serviceAddress('kafka');
    await createTopics(brokers, prefix, ALL_TOPICS);
    stack.defer(() => deleteTopics(brokers, prefix));
    const redis = stack.use(await freshRedis());
    stores = { ...PRODUCTION, REDIS_URL: redis.url, KAFKA_BROKERS: brokers, TOPIC_PREFIX: prefix };
  });
  afterAll(() => stack.disposeAsync());

  it('D1-11 D1-14: with an empty schema, a start and a command say to run portcullis migrate', async () => {
    await using database = await freshDatabase();
    const { started, commanded } = await refusals({ ...stores, DATABASE_URL: database.url }, { isProcess: true });
    expect(started).toMatchObject({ code: 78, stderr: expect.stringContaining('run portcullis migrate') });
    expect(commanded).toMatchObject({ code: 1, stderr: expect.stringContaining('run portcullis migrate') });
  });

  it('D1-11 D1-14: with an older schema, a start says to run portcullis migrate', async () => {
    await using database = await realDatabase();
    await withPostgres(database.url, (client) =>
      client.query('delete from mikro_orm_migrations where name = (select max(name) from mikro_orm_migrations)'),
    );
    const { started } = await refusals({ ...stores, DATABASE_URL: database.url });
    expect(started).toMatchObject({ code: 78, stderr: expect.stringContaining('run portcullis migrate') });
  });

  it('D1-11: with a newer schema, a start succeeds, as during a rolling upgrade', async () => {
    await using database = await realDatabase();
    await withPostgres(database.url, (client) =>
      client.query("insert into mikro_orm_migrations (name) values ('migration-99991231-of-a-later-version')"),
    );
    await using folder = await emptyFolder();
    expect(await refusalOf(folder.path, { ...stores, DATABASE_URL: database.url })).toBeUndefined();
  });

  it('D1-14: with a role without privileges, a start and a command say that a privilege is missing', async () => {
    await using database = await realDatabase();
    const role = `r_${randomUUID().slice(0, 8)}`;
    const url = Object.assign(new URL(database.url), { username: role, password: 'nothing' });
    await withPostgres(database.url, (client) => client.query(`create role ${role} login password 'nothing'`));
    try {
      const { started, commanded } = await refusals({ ...stores, DATABASE_URL: url.href });
      for (const { code, stderr } of [started, commanded])
        expect([code, stderr]).toEqual([1, expect.stringContaining('lacks a privilege')]);
    } finally {
      await withPostgres(database.url, (client) => client.query(`drop role ${role}`));
    }
  });

  it('D1-14: with dropped tables, a start and a command say that a table or column is missing', async () => {
    await using database = await realDatabase();
    await withPostgres(database.url, (client) => client.query('drop table revoked_tokens, clients cascade'));
    const disable = ['client', 'disable', randomUUID()];
    const { started, commanded } = await refusals({ ...stores, DATABASE_URL: database.url }, { command: disable });
    for (const { code, stderr } of [started, commanded])
      expect([code, stderr]).toEqual([1, expect.stringContaining('a table or column is missing')]);
  });

  it('D1-14: with a dropped column, a command says that a table or column is missing', async () => {
    await using database = await realDatabase();
    await withPostgres(database.url, (client) => client.query('alter table clients drop column id cascade'));
    await using folder = await emptyFolder();
    const env = { ...stores, DATA_DIR: folder.path, DATABASE_URL: database.url };
    const commanded = await commandOn(env, ['client', 'disable', randomUUID()]);
    expectPlain(commanded);
    expect([commanded.code, commanded.stderr]).toEqual([1, expect.stringContaining('a table or column is missing')]);
  });

  it('D1-14: with a missing database, a start says that no database has this name', async () => {
    await using database = await realDatabase();
    const missing = new URL(database.url);
    missing.pathname = '/absent_database';
    const first = await refusals({ ...stores, DATABASE_URL: missing.href });
    expect(first.started).toMatchObject({ code: 1, stderr: expect.stringContaining('no database with this name') });
  });

  // In a quick run test/start/refusals.test.ts has it.
  thoroughly.each(['PORT', 'ADMIN_PORT'])('D1-14: with a %s in use, a start names the variable', async (variable) => {
    await using database = await realDatabase();
    const [port = 0] = await freePorts(1);
    await using taken = createServer().listen(port, '127.0.0.1');
    const { started } = await refusals({ ...stores, DATABASE_URL: database.url, [variable]: String(port) });
    expect(started).toMatchObject({ code: 1, stderr: expect.stringContaining(`set ${variable}`) });
    expect(taken.listening).toBe(true);
  });
});
