import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { freshDatabase, freshRedis, topicPrefix } from '../support/services/isolation.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { emptyFolder, migratedFolder, refusalOf } from '../support/start/folders.ts';
import { startInstance } from '../support/start/process.ts';

const LONG = 'x'.repeat(32);
const SECRETS = {
  JWT_SECRET_USER: `${LONG}1`,
  JWT_SECRET_DISCOVER: `${LONG}2`,
  JWT_SECRET_LEGACY: `${LONG}3`,
  SECRET_PEPPER: LONG,
  WEBHOOK_USERNAME: 'chain',
  WEBHOOK_PASSWORD: 'the password of the chain',
};

it('D1-12: seed on an embedded database does what the first start does', async () => {
  await using folder = await migratedFolder();
  const env = { DATA_DIR: folder.path };
  expect(await portcullis(['seed'], env)).toMatchObject({ code: 0, err: '' });
  const path = join(folder.path, 'demo.json');
  const demo = JSON.parse(await readFile(path, 'utf8'));
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(JSON.parse((await portcullis(['seed', '--json'], env)).out)).toEqual({
    demo: path,
    node_id: demo.node_id,
    client_id: demo.client.client_id,
  });
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(demo);
});

it('D1-12: a command whose database does not respond exits with 1 and one sentence', async () => {
  await using folder = await emptyFolder();
  const [port] = await freePorts(1);
  const env = { DATA_DIR: folder.path, DATABASE_URL: `postgres://me:hidden@127.0.0.1:${port}/rows` };
  const { code, err } = await portcullis(['migrate'], env);
  expect(code).toBe(1);
  expect(err).toBe(
    `portcullis: the database at 127.0.0.1:${port} does not respond (ECONNREFUSED): start it, or change DATABASE_URL\n`,
  );
});

const SSL_REQUEST = '0000000804d2162f';
const CLIENT_HELLO = /^1603/;

/** A PostgreSQL that answers the request for TLS, and what it was sent after that, in hexadecimal. */
async function serverWithTls(answer: 'N' | 'S') {
  const sent: string[] = [];
  const server = createServer((socket) => {
    socket
      .on('error', () => undefined)
      .on('data', (bytes) => {
        sent.push(bytes.toString('hex'));
        if (sent.length === 1) socket.write(answer);
        else socket.end('no TLS');
      });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    sent,
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: () => void server.close(),
  };
}

it.each(['?sslmode=verify-full', '?ssl=true', '?sslmode=no-verify'])(
  'D1-12: with %s nothing is sent to a server without TLS, and one sentence says why',
  async (query) => {
    using server = await serverWithTls('N');
    const { code, err } = await portcullis(['migrate'], {
      DATABASE_URL: `postgres://me:hidden@${server.host}/r${query}`,
    });
    expect({ code, err, sent: server.sent }).toEqual({
      code: 1,
      err: `portcullis: the database at ${server.host} cannot be used with TLS (the server does not support it): see sslmode in DATABASE_URL\n`,
      sent: [SSL_REQUEST],
    });
  },
);

it('D1-12: with sslmode the TLS handshake is the first thing sent to a server', async () => {
  using server = await serverWithTls('S');
  const url = `postgres://me:hidden@${server.host}/rows?sslmode=verify-full`;
  const { code, err } = await portcullis(['migrate'], { DATABASE_URL: url });
  expect(server.sent).toEqual([SSL_REQUEST, expect.stringMatching(CLIENT_HELLO)]);
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(
      /^portcullis: the database at \S+ cannot be used with TLS \((?:ERR_SSL_[A-Z_]+|EPROTO)\): see sslmode in DATABASE_URL\n$/,
    ),
  });
});

it('D1-12: a missing certificate file is named with DATABASE_URL', async () => {
  const url = 'postgres://me:hidden@127.0.0.1:1/rows?sslmode=verify-full&sslrootcert=/absent/ca.pem';
  const { code, err } = await portcullis(['migrate'], { DATABASE_URL: url });
  expect({ code, err }).toEqual({
    code: 1,
    err: 'portcullis: /absent/ca.pem cannot be read (ENOENT): check the path in DATABASE_URL\n',
  });
});

/** What the second of two at once may say, unless the first has ended by then. */
const SECOND_WAITS = expect.stringMatching(/^(?:waiting for the lock of another migration, held by pid \d+ .*\n)?$/);

describeReal(['postgres', 'redis', 'kafka'], 'on real servers', () => {
  it('D1-12: options in DATABASE_URL apply, and times stay in UTC', async () => {
    await using fresh = await freshDatabase();
    const url = new URL(fresh.url);
    url.searchParams.set('options', '-c timezone=Asia/Tokyo -c statement_timeout=12345');
    url.searchParams.set('application_name', 'a test');
    await using database = await openDatabase({ url: url.href });
    const settings = await database.db.unscoped('a test').raw(
      (sql) => sql`
        select current_setting('timezone') as zone, current_setting('statement_timeout') as timeout,
          current_setting('application_name') as name`,
    );
    expect(settings).toEqual([{ zone: 'UTC', timeout: '12345ms', name: 'a test' }]);
  });

  it('D1-11: production rejects an older schema and missing topics until portcullis migrate has run', async () => {
    await using folder = await emptyFolder();
    await using database = await freshDatabase();
    await using redis = await freshRedis();
    const env = {
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PUBLIC_URL: 'https://portcullis.example',
      DATA_DIR: folder.path,
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      KAFKA_BROKERS: serviceAddress('kafka'),
      TOPIC_PREFIX: topicPrefix(),
      ...SECRETS,
    };
    const refused = await refusalOf(folder.path, env);
    expect(refused).toMatch(/the database lacks migration-[^:]+: run portcullis migrate/);
    expect(refused).toContain(`Kafka lacks the topics ${ALL_TOPICS.join(', ')}: run portcullis migrate`);

    const migrate = ['migrate', '--json'];
    const both = await Promise.all([portcullis(migrate, env), portcullis(migrate, env)]);
    expect(both.map(({ code, err }) => [code, err])).toEqual([
      [0, SECOND_WAITS],
      [0, SECOND_WAITS],
    ]);
    const migrated = both.flatMap(({ out }) => JSON.parse(out).migrations);
    expect(new Set(migrated).size).toBe(migrated.length);
    expect(migrated.length).toBeGreaterThan(0);
    const again = await portcullis(['migrate'], env);
    expect(again).toEqual({ code: 0, out: 'No new migrations.\nNo new topics.\n', err: '' });

    const seed = await portcullis(['seed'], env);
    expect(seed).toMatchObject({ code: 1, out: '' });
    expect(seed.err).toContain('is not allowed in production');

    await using instance = await startInstance(env);
    expect((await fetch(`${instance.baseUrl}/health`)).status).toBe(200);
    expect(instance.stdout()).not.toContain('Supervisor');
    const ended = await instance.kill('SIGTERM');
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    // What kafkajs and Redis have to say while they connect and leave is no more than a line.
    expect(ended.stdout).not.toMatch(/\\n\s+at /);
  });

  it('D1-12: seed loads the demo data on real servers once, and rejects an older schema', async () => {
    await using folder = await emptyFolder();
    await using older = await freshDatabase();
    const early = await portcullis(['seed'], { DATA_DIR: folder.path, DATABASE_URL: older.url });
    expect(early).toMatchObject({ code: 1, out: '' });
    expect(early.err).toContain('run portcullis migrate, or wait');
    await using database = await realDatabase();
    const env = { DATA_DIR: folder.path, DATABASE_URL: database.url };
    for (const _time of [1, 2]) expect((await portcullis(['seed'], env)).code).toBe(0);
    const accounts = await database.db.unscoped('a test').run((k) => k.selectFrom('accounts').select('id'));
    expect(accounts).toHaveLength(30);
  });
});
