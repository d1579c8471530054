import { randomUUID } from 'node:crypto';
import { beforeAll, expect, inject, it } from 'vitest';
import { passwordsAtOnce } from '../../src/lib/thread-pool.ts';
import { EraseUserDocument } from '../graphql/generated/graphql.ts';
import { operate } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { type PostgresClient, withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';
import { BULK, newUser, SINGLE } from '../support/user-migrations/calls.ts';

/** Longer than any statement here takes on a busy machine that waits for no lock. */
const TIMEOUT_MS = 4_000;

/** How many requests come at once; the logins are enough for some turns of all who hash. */
const AT_ONCE = inject('isThorough')
  ? { batches: 10, erasures: 20, logins: 150 }
  : { batches: 1, erasures: 3, logins: Math.min(60, 10 + 4 * passwordsAtOnce()) };
/** Each batch has ten operations of so many reads. */
const READS = 29;

describeReal('postgres', 'what one caller may take of the database', () => {
  const portcullis = beforeTests(() => startPortcullis({ env: { STATEMENT_TIMEOUT_MS: String(TIMEOUT_MS) } }));
  let tokens: { mine: string; other: string };
  beforeAll(async () => {
    const { clientToken, demo } = portcullis;
    tokens = { mine: await clientToken(), other: await clientToken(demo.other_node.client) };
  });

  const connections = () => portcullis.service.context.database.connections;

  /** Whatever reads the table waits as long as `work` goes on. */
  async function withLocked<Result>(table: string, work: (locker: PostgresClient) => Promise<Result>): Promise<Result> {
    return withPostgres(portcullis.env.DATABASE_URL ?? '', async (locker) => {
      await locker.query(`begin; lock table ${table} in access exclusive mode`);
      return work(locker);
    });
  }

  /** How many statements of the service wait for the lock of a table. */
  async function lockWaits(table: string): Promise<number> {
    return withPostgres(portcullis.env.DATABASE_URL ?? '', async (client) => {
      const { rows } = await client.query(
        `select 1 from pg_locks where not granted and locktype = 'relation' and relation = '${table}'::regclass`,
      );
      return rows.length;
    });
  }

  function batch(operations: number, aliases: number): { query: string }[] {
    const fields = Array.from({ length: aliases }, (_, at) => `a${at}: assets(first: 1) { edges { node { id } } }`);
    return Array.from({ length: operations }, () => ({ query: `{ ${fields.join(' ')} }` }));
  }

  const graphql = (json: unknown, token = tokens.mine) => portcullis.call('POST', '/graphql', { token, json });
  const otherGet = () => portcullis.call('GET', '/v1/accounts', { token: tokens.other });
  /** While the lock is held: one that waited for it would get no 200. A busy machine may refuse one with 503. */
  const expectServed = async () => {
    for (let at = 0; at < 5; at += 1) await expect.poll(async () => (await otherGet()).status).toBe(200);
  };

  it(`D2-25: ${AT_ONCE.batches * 10 * READS} slow reads of a node use half of the connections, and another node is served`, async () => {
    await withLocked('assets', async (locker) => {
      let isOver = false;
      const askAll = () => {
        isOver = false;
        const batches = Array.from({ length: AT_ONCE.batches }, () => graphql(batch(10, READS)));
        return Promise.all(batches).finally(() => {
          isOver = true;
        });
      };
      let asked = askAll();
      // A busy machine may refuse them before they wait: then they come again.
      await expect
        .poll(() => {
          if (isOver) asked = askAll();
          return connections().waiting(portcullis.demo.node_id);
        })
        .toBeGreaterThan(AT_ONCE.batches * 100);
      expect(connections().held(portcullis.demo.node_id)).toBe(5);
      await expectServed();
      expect(connections().held(portcullis.demo.node_id)).toBeLessThanOrEqual(5);
      // A token is issued too: what is of no node has connections of its own.
      await portcullis.clientToken(portcullis.demo.other_node.client);
      await locker.query('rollback');
      const answers = await asked;
      // One that comes when the queue of its node is full, or waits too long there, is refused as a whole.
      const others = answers.filter(({ status }) => status !== 200 && status !== 503 && status !== 504);
      expect(others.map(({ status, text }) => `${status} ${text}`)).toEqual([]);
      const codes = new Set(answers.flatMap(({ text }) => text.match(/"code":"\w+"/g) ?? []));
      for (const code of codes) expect(['"code":"SERVICE_UNAVAILABLE"', '"code":"GATEWAY_TIMEOUT"']).toContain(code);
    });
    expect([connections().held(portcullis.demo.node_id), connections().waiting()]).toEqual([0, 0]);
  });

  it('D2-25: a statement for a request times out: 504, GATEWAY_TIMEOUT in GraphQL, and 500 where 504 is not documented', async () => {
    await withLocked('accounts', async () => {
      const [rest, socketless] = await Promise.all([
        portcullis.call('GET', '/v1/accounts', { token: tokens.mine }),
        graphql({ query: '{ accounts { totalCount } }' }),
      ]);
      expect([rest.status, rest.json.message]).toEqual([504, 'gateway_timeout']);
      expect(socketless.json.errors[0]).toMatchObject({
        message: 'gateway_timeout',
        extensions: { code: 'GATEWAY_TIMEOUT' },
      });
    });
    await withLocked('users', async () => {
      const migrated = await portcullis.call('POST', SINGLE, { token: tokens.mine, json: newUser() });
      expect([migrated.status, migrated.json.message]).toEqual([500, 'internal_error']);
    });
    expect((await portcullis.call('GET', '/v1/accounts', { token: tokens.mine })).status).toBe(200);
  });

  it(`D2-25: ${AT_ONCE.erasures} concurrent erasures of a node use one of its connections, and another node is served`, async () => {
    const users = Array.from({ length: AT_ONCE.erasures }, () => ({ ...newUser(), email: `${randomUUID()}@x.y` }));
    const migrated = await portcullis.call('POST', BULK, { token: tokens.mine, json: { users } });
    const ids: string[] = migrated.json.results.map((row: { user_id: string }) => row.user_id);
    await withLocked('idempotent_answers', async (locker) => {
      const erased = ids.map((id) => operate(portcullis, tokens.mine, EraseUserDocument, { id }));
      await expect.poll(() => lockWaits('idempotent_answers')).toBeGreaterThan(0);
      await expectServed();
      // What is of no node is the service's own work, which comes and goes.
      await expect
        .poll(() => [connections().held(portcullis.demo.node_id), connections().held('')], { interval: 5 })
        .toEqual([1, 0]);
      // It takes as long as it takes all the same: a statement that came later and that a request waits for has ended.
      const headers = { 'idempotency-key': randomUUID() };
      const late = await portcullis.call('POST', SINGLE, { token: tokens.other, json: newUser(), headers });
      expect(late.status).toBe(500);
      expect(connections().held(portcullis.demo.node_id)).toBe(1);
      await locker.query('rollback');
      const names = (await Promise.all(erased)).map(({ result }) => result.__typename);
      expect(names).toEqual(names.map(() => 'User'));
    });
    expect([connections().held(portcullis.demo.node_id), connections().waiting()]).toEqual([0, 0]);
  });

  it(`D2-25: with ${AT_ONCE.logins} concurrent wrong logins of a node, a login of another node waits only for its turn`, async () => {
    const { semaphore: hashing } = portcullis.service.context.passwords;
    const { demo, call } = portcullis;
    const login = (client: object, username: string, password: string) =>
      call('POST', '/v2/oauth/token', { json: { grant_type: 'password', ...client, username, password } });
    const wrong = Array.from({ length: AT_ONCE.logins }, (_, at) => login(demo.client, `guess ${at}`, 'wrong'));
    await expect.poll(() => hashing.waiting(demo.node_id), { interval: 1 }).toBeGreaterThan(AT_ONCE.logins / 5);
    const { client, supervisor } = demo.other_node;
    const right = await login(client, supervisor.username, supervisor.password);
    expect(right.status).toBe(200);
    expect(hashing.waiting(demo.node_id)).toBeGreaterThan(0);
    const statuses = new Set((await Promise.all(wrong)).map(({ status }) => status));
    // The queue has room for 64.
    expect([...statuses].sort()).toEqual(AT_ONCE.logins > 64 ? [401, 503] : [401]);
    expect([hashing.held(), hashing.waiting()]).toEqual([0, 0]);
  });

  it('D2-25: a statement without a request has no timeout', async () => {
    const { db } = portcullis.service.context.database;
    const count = () => db.unscoped('test').raw((sql) => sql`select count(*) from accounts`);
    // The connections that are idle have served requests.
    await Promise.all(Array.from({ length: 10 }, otherGet));
    await withLocked('accounts', async (locker) => {
      const counted = Promise.all([...Array.from({ length: 4 }, count), db.transaction(count)]);
      await expect.poll(() => lockWaits('accounts')).toBe(5);
      // A statement that came later and that a request waits for has ended.
      expect((await otherGet()).status).toBe(504);
      await locker.query('rollback');
      expect(await counted).toHaveLength(5);
    });
  });
});
