import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { type Database, openDatabase } from '../../src/platform/database/open-database.ts';
import { migrate } from '../../src/platform/database/schema-migrations.ts';
import { entities } from '../../src/tables/tables.ts';
import { openStream } from '../support/graphql/event-reader.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Portcullis, startEmbedded } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';
import { type ReleaseData, releaseData } from '../support/upgrades/fixtures.ts';

/** Tables that can have no row in a fixture, and why. */
const EMPTY: Record<string, Record<string, string>> = {
  embedded: { account_changes: 'a count waits only for another connection, and the embedded database has one' },
  server: {},
};
/** Later than the leases of the process that died; within the life of what it issued. */
const LATER_MS = 120_000;

type Row = Record<string, unknown>;
type Rows = Record<string, Row[]>;

function opened({ dataDir, databaseUrl }: ReleaseData): Promise<Database> {
  return openDatabase(databaseUrl === undefined ? { dataDir: join(dataDir, 'postgres') } : { url: databaseUrl });
}

function raw<Found>({ db }: Pick<Database, 'db'>, text: string): Promise<Found[]> {
  return db.unscoped('a test reads all').raw((sql) => sql<Found>([text] as unknown as TemplateStringsArray));
}

/** Every row of the tables, as PostgreSQL spells it; a partition's with its parent. */
async function rowsOf(database: Database, tables: readonly string[]): Promise<Rows> {
  const rows: Rows = {};
  for (const table of tables) {
    rows[table] = (await raw<{ row: Row }>(database, `select to_jsonb(t) as row from ${table} t order by t::text`)).map(
      ({ row }) => row,
    );
  }
  return rows;
}

/** The same rows with the columns that rows of another version have. */
function withColumnsOf(model: Rows, rows: Rows): Rows {
  const cut = (row: Row, [first = {}]: Row[]) =>
    Object.fromEntries(Object.entries(row).filter(([column]) => column in first));
  return Object.fromEntries(
    Object.entries(rows).map(([table, found]) => [table, found.map((row) => cut(row, model[table] ?? []))]),
  );
}

function upgradeTests(name: 'embedded' | 'server'): void {
  const data = beforeTests(() => releaseData(name));
  let before: Rows;
  let after: Rows;
  let p: Portcullis;
  let beganMs = Date.now();

  const nowMs = () => data.known.atMs + LATER_MS + Date.now() - beganMs;
  const start = () => {
    const { dataDir, databaseUrl } = data;
    const env = {
      PUBLIC_URL: 'https://gate.example',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    };
    return startEmbedded({ dataDir, env, overrides: { nowMs } });
  };

  beforeAll(async () => {
    const tables = Object.keys(data.known.tables).filter((table) => table !== 'mikro_orm_migrations');
    await using database = await opened(data);
    before = await rowsOf(database, tables);
    await migrate(database);
    after = await rowsOf(database, tables);
  });
  beforeAll(async () => {
    beganMs = Date.now();
    p = await start();
  });
  afterAll(async () => {
    await p?.[Symbol.asyncDispose]();
  });

  async function graphql(query: string, token = data.known.clientToken) {
    const answer = await p.call('POST', '/graphql', { token, json: { query } });
    expect(answer.json.errors, answer.text).toBeUndefined();
    return answer.json.data;
  }
  const statusOf = async (token: string) =>
    (await p.call('GET', '/v1/accounts', { token, headers: { 'x-target-server': 'accounts' } })).status;
  const grant = (json: object) => p.call('POST', '/v2/oauth/token', { json });
  const database = () => p.service.context.database;

  it('the fixture has rows in every table of the release, and each of these tables still exists', () => {
    const empty = Object.entries(data.known.tables).filter(([, count]) => count === 0);
    expect(empty.map(([table]) => table)).toEqual(Object.keys(EMPTY[name] ?? {}));
    const counted = Object.fromEntries(Object.entries(before).map(([table, rows]) => [table, rows.length]));
    const { mikro_orm_migrations: _, ...told } = data.known.tables;
    expect(counted).toEqual(told);
    const now = entities.map((entity) => entity.meta.tableName);
    expect(Object.keys(told).filter((table) => !now.includes(table))).toEqual([]);
  });

  it('the schema migrations change no row, except that clients with every other scope get users:erase', () => {
    const { clients = [], ...others } = withColumnsOf(before, after);
    const everything = PERMISSIONS.filter((name) => name !== 'users:erase');
    const expected = before.clients?.map((row) => {
      const scopes = row.scopes as string[];
      return everything.every((name) => scopes.includes(name)) ? { ...row, scopes: [...scopes, 'users:erase'] } : row;
    });
    expect({ ...others, clients }).toEqual({ ...before, clients: expected });
  });

  it('tokens remain valid, and what was revoked or disabled stays rejected', async () => {
    const { endlessToken, clientToken, loginToken, revokedToken, disabledClient } = data.known;
    expect(await Promise.all([endlessToken, clientToken, loginToken, revokedToken].map(statusOf))).toEqual([
      200, 200, 200, 401,
    ]);
    expect((await grant({ grant_type: 'client_credentials', ...disabledClient })).status).toBe(401);
  });

  it.each(['clientRefreshToken', 'loginRefreshToken'] as const)(
    'the %s can be redeemed for a new pair',
    async (which) => {
      const answer = await grant({ grant_type: 'refresh_token', ...p.demo.client, refresh_token: data.known[which] });
      expect(answer.status, answer.text).toBe(200);
      expect(await statusOf(answer.json.access_token)).toBe(200);
    },
  );

  it('a password hashed by the release is accepted', async () => {
    expect((await grant({ grant_type: 'password', ...p.demo.client, ...data.known.createdSupervisor })).status).toBe(
      200,
    );
  });

  it('a quota continues from the saved count', async () => {
    const { client_id: clientId, token } = data.known.limitedClient;
    const saved = before.client_quotas?.find((row) => row.client_id === clientId)?.used;
    expect(await statusOf(token)).toBe(200);
    await vi.waitFor(async () => {
      const [row] = await raw<{ used: string }>(
        database(),
        `select used from client_quotas where client_id = '${clientId}'`,
      );
      expect(Number(row?.used)).toBe(Number(saved) + 1);
    });
  });

  it('a cursor leads to the same page, and the list has every row', async () => {
    const { cursor, accountIds } = data.known;
    const pages = await graphql(
      `{ accounts(first: 100) { edges { node { id } } } next: accounts(first: 5, after: "${cursor.after}") { edges { node { id } } } }`,
    );
    const ids = (page: { edges: { node: { id: string } }[] }) => page.edges.map(({ node }) => node.id);
    expect(ids(pages.accounts)).toEqual(accountIds);
    expect(ids(pages.next)).toEqual(cursor.next);
    expect(accountIds).not.toContain(data.known.deletedAccount);
    const rest = await p.call('GET', '/v1/accounts?limit=10&page=1', {
      token: data.known.clientToken,
      headers: { 'x-target-server': 'accounts' },
    });
    expect(rest.json.total).toBe(accountIds.length);
  });

  it('an idempotency key repeats its response byte for byte, and is a conflict with another body', async () => {
    const { key, body, answer } = data.known.keyed;
    const call = (text: string) =>
      p.call('POST', '/v2/users/migrate/with-wallet', {
        ...{ token: data.known.clientToken, body: text },
        headers: { 'idempotency-key': key, 'content-type': 'application/json' },
      });
    expect(await call(body)).toMatchObject({ status: 201, text: answer });
    expect((await call(body.replace('0xkeyed', '0xother'))).status).toBe(409);
  });

  it('texts and numbers are returned as they were sent', async () => {
    const { texts, userId, erased, ruleId, doneId, assetAddress, bulk } = data.known;
    const told = await graphql(`{
      user(id: "${userId}") { name surname email }
      erased: user(id: "${erased.userId}") { name email address }
      walletRule(id: "${ruleId}") { name version permissionlessTransferLimitRule { maxAmount } }
      transaction(id: "${doneId}") { status gasUsed contractAddress }
      asset(id: "${p.demo.asset_id}") { contractAddress }
      migration(id: "${bulk.id}") { rows(first: 10) { edges { node { index email status reason } } } }
    }`);
    expect(told).toEqual({
      user: { name: texts.name, surname: texts.surname, email: 'Zoë@Example.com' },
      erased: { name: '', email: '', address: '' },
      walletRule: { name: texts.name, version: 2, permissionlessTransferLimitRule: { maxAmount: texts.amount } },
      transaction: { status: 'DONE', gasUsed: texts.gasUsed, contractAddress: assetAddress },
      asset: { contractAddress: assetAddress },
      migration: { rows: { edges: bulk.rows } },
    });
  });

  it('an MCP tool reads a rule that the release has written', async () => {
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'get_wallet_rule', arguments: { rule_id: data.known.ruleId } },
    };
    const headers = { accept: 'application/json, text/event-stream' };
    const { json } = await p.call('POST', '/v2/mcp', { token: p.demo.client.client_secret, headers, json: call });
    expect(json.result.structuredContent.rule).toMatchObject({
      id: data.known.ruleId,
      name: data.known.texts.name,
      version: 2,
    });
  });

  it('a subscriber continues after its last event, without a gap', async () => {
    const { eventCursor, behindId, clientToken: token } = data.known;
    const query =
      'subscription ($after: String) { transactionUpdates(after: $after) { cursor transaction { id status } } }';
    await using events = await openStream(p, token, query, { variables: { after: eventCursor } });
    const seen: { cursor: string; transaction: { id: string; status: string } }[] = [];
    while (seen.at(-1)?.transaction.status !== 'DONE' || seen.at(-1)?.transaction.id !== behindId) {
      seen.push((await events.nextJson()).data.transactionUpdates);
    }
    expect(seen.map(({ cursor }) => BigInt(cursor))).toEqual(seen.map((_, at) => BigInt(eventCursor) + BigInt(at + 1)));
  });

  it('a notification parked by the release is applied once its transaction is registered', async () => {
    const { parkedId, texts } = data.known;
    const input = `{ id: "${parkedId}", collection: TOKEN_TRANSACTIONS, type: 1 }`;
    await graphql(`mutation { registerTransaction(input: ${input}) { __typename } }`);
    const told = await graphql(`{ transaction(id: "${parkedId}") { status error } }`);
    expect(told.transaction).toEqual({ status: 'ERROR', error: texts.error });
  });

  it('a wallet parked by the release is stored once its account arrives', async () => {
    const { id, accountId } = data.known.parkedWallet;
    const row = {
      version: 1,
      node_id: p.demo.node_id,
      name: 'late',
      type: 'organisation',
      status: 1,
      created_at: '2026-11-20T10:00:00Z',
    };
    const message = {
      topic: 'reference.accounts',
      key: accountId,
      value: Buffer.from(JSON.stringify(row)),
      headers: {},
    };
    await p.service.context.bus.publish([message]);
    await vi.waitFor(async () => {
      expect((await graphql(`{ wallet(id: "${id}") { id } }`)).wallet).not.toBeNull();
    });
  });

  it('a file started by the release is migrated to its end, each row once', async () => {
    const { id, rows } = data.known.file;
    const done = await vi.waitFor(async () => {
      const { migration } = await graphql(`{ migration(id: "${id}") { status success failed skipped } }`);
      expect(migration.status).toBe('DONE');
      return migration;
    });
    expect(done.success + done.failed + done.skipped).toBe(rows);
    const users = await raw<{ address: string }>(
      database(),
      `select address from users where email ~ '^[0-9]+@example.com$'`,
    );
    expect(users.length).toBe(done.success);
    expect(new Set(users.map(({ address }) => address)).size).toBe(done.success);
  });

  it('an event in the outbox of the release is published once', async () => {
    const { waitingUser } = data.known;
    const relayed = () => raw(database(), `select from bus_messages where key = '${waitingUser}'`);
    await vi.waitFor(async () => {
      expect(await relayed()).toHaveLength(1);
      expect(await raw(database(), 'select from outbox')).toHaveLength(0);
    });
  });

  /** How often the audit has each of the correlation ids. */
  async function recorded(): Promise<Record<string, number>> {
    const rows = await raw<{ id: string; count: string }>(
      database(),
      'select correlation_id as id, count(*) as count from audit_records group by 1',
    );
    const counts = new Map(rows.map(({ id, count }) => [id, Number(count)]));
    const { writtenRecords, spooledRecords } = data.known;
    return Object.fromEntries([...writtenRecords, ...spooledRecords].map((id) => [id, counts.get(id) ?? 0]));
  }

  const once = () => {
    const { writtenRecords, spooledRecords } = data.known;
    return Object.fromEntries([...writtenRecords, ...spooledRecords].map((id) => [id, 1]));
  };

  it('records in the spool of the release reach the audit log, each once', async () => {
    const had = before.audit_records?.map((row) => row.correlation_id);
    expect(had).toEqual(expect.arrayContaining(data.known.writtenRecords));
    expect(data.known.spooledRecords.filter((id) => had?.includes(id))).toEqual([]);
    await vi.waitFor(async () => expect(await recorded()).toEqual(once()));
    const [id = ''] = data.known.spooledRecords;
    const { auditRecords } = await graphql(
      `{ auditRecords(first: 2, filter: { correlationId: "${id}" }) { edges { node { path headers } } } }`,
    );
    expect(auditRecords.edges).toEqual([
      { node: { path: '/v1/accounts', headers: expect.objectContaining({ 'user-agent': expect.any(String) }) } },
    ]);
  });

  // An embedded database takes long to start again: test/start/first-start.test.ts has it of this version's.
  it.runIf(inject('isThorough') || name === 'server')('a second start finds the data of the first one', async () => {
    const count = async () =>
      await graphql('{ accounts { totalCount } users { totalCount } transactions { totalCount } }');
    const first = await count();
    await p[Symbol.asyncDispose]();
    p = await start();
    expect(await count()).toEqual(first);
    await vi.waitFor(async () => expect(await recorded()).toEqual(once()));
    expect(await statusOf(data.known.endlessToken)).toBe(200);
    const id = randomUUID();
    await p.call('GET', '/health', { headers: { 'x-correlation-id': id } });
    await vi.waitFor(async () => {
      expect(await raw(database(), `select from audit_records where correlation_id = '${id}'`)).toHaveLength(1);
    });
    expect(await recorded()).toEqual(once());
  });
}

describe('the DATA_DIR of an embedded instance of 0.1.0 that was killed', () => upgradeTests('embedded'));
describeReal('postgres', 'the PostgreSQL and the DATA_DIR of an instance of 0.1.0 that was killed', () =>
  upgradeTests('server'),
);
