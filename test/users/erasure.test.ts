import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { permissionsOfRole } from '../../src/access/identity/permissions.rules.ts';
import { UserErasure } from '../../src/features/users/users.service.ts';
import { EraseUserDocument, MigrationsDocument, UserDocument, UsersDocument } from '../graphql/generated/graphql.ts';
import { loginOfDemo, MISSING, operate } from '../support/graphql/administration.ts';
import { socketClient } from '../support/graphql/sockets.ts';
import { browserForm } from '../support/graphql/upload-requests.ts';
import { type Portcullis, startEmbedded, startPortcullis } from '../support/harness.ts';
import { callOf, connect, post } from '../support/mcp/agents.ts';
import { rows } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { BULK, migrationsOf } from '../support/user-migrations/calls.ts';
import { limit, rulesOf } from '../support/wallet-rules/rules.ts';
import { versionsOf } from '../support/wallet-rules/versions.ts';

const lines: string[] = [];
const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });

let p: Portcullis;
let token: string;
let migrate: Awaited<ReturnType<typeof migrationsOf>>;

beforeAll(async () => {
  // PostgreSQL is soon done with it.
  p = await (inject('isThorough') ? startEmbedded : startPortcullis)({ overrides: { log } });
  token = await p.clientToken();
  migrate = await migrationsOf(p, token);
});
afterAll(() => p[Symbol.asyncDispose]());

/** A person with a mark in each of the personal members. */
function person() {
  const mark = randomUUID().slice(0, 8);
  return {
    mark,
    user: {
      wallet_address: `0xÄ${mark}`,
      email: `Zoë-${mark}@x.y`,
      external_id: `ext"${mark}`,
      name: `Zoë ${mark}`,
      surname: `O'Hara ${mark}`,
    },
  };
}

/** The tables that have a mark; what is on its way to the KYC service has its own life. */
async function traces(mark: string): Promise<string[]> {
  await p.service.context.auditWriter.flush();
  const tables = await rows(p).raw(
    (sql) => sql<{ name: string }>`
      select table_name as name from information_schema.tables where table_schema = 'public'
      and table_name not in ('outbox', 'bus_messages') and table_name not like 'audit\\_records\\_%'`,
  );
  const found = [];
  for (const { name } of tables) {
    const hits = await rows(p).raw(
      (sql) => sql`select 1 from ${sql.id(name)} t where to_jsonb(t)::text ilike ${`%${mark}%`} limit 1`,
    );
    if (hits.length > 0) found.push(name);
  }
  return found.sort();
}

const gql = (query: string, variables: object = {}, by = token) =>
  p.call('POST', '/graphql', { token: by, json: { query, variables } });

async function erase(id: string, by = token) {
  return (await operate(p, by, EraseUserDocument, { id })).result;
}

async function recordsOf(column: 'path' | 'operation' | 'correlation_id', value: string) {
  await p.service.context.auditWriter.flush();
  return rows(p).run((k) => k.selectFrom('audit_records').selectAll().where(column, '=', value));
}

/** Sends an operation over a WebSocket, and returns its first result. */
async function overSocket(query: string, variables: object) {
  const client = socketClient(p, token);
  const results: unknown[] = [];
  for await (const result of client.iterate({ query, variables: { ...variables } })) results.push(result);
  await client.dispose();
  return JSON.stringify(results);
}

async function overSse(query: string, variables: object) {
  const headers = { accept: 'text/event-stream' };
  return (await p.call('POST', '/graphql', { token, headers, json: { query, variables } })).text;
}

const PROGRESS = `subscription ($id: ID!) { migrationProgress(id: $id) { done migration {
  rows(first: 10) { edges { node { email externalId } } } } } }`;

describe('erasing a user', () => {
  it('D7-09 D7-10: removes everything about a person who appeared over REST, GraphQL, MCP and in a file', async () => {
    const { mark, user } = person();
    const keyed = { 'idempotency-key': randomUUID() };
    const { json } = await migrate.one(user, keyed);
    const id: string = json.id;
    await migrate.one({ wallet_address: 'w', email: user.email.toUpperCase(), name: user.name });
    await migrate.one({ wallet_address: `0xä${mark} `, email: `other-${mark}@x.y` });
    const neighbour = { wallet_address: randomUUID(), email: `${randomUUID()}@x.y`, name: 'Neighbour' };
    await migrate.many([user, neighbour], { 'idempotency-key': randomUUID() });
    const input = '{walletAddress: "w", externalId: $x}';
    await gql(`mutation ($x: String) { migrateUser(input: ${input}) { __typename } }`, { x: user.external_id });
    await gql(`query ($q: String) { users(filter: {search: $q}) { edges { node { name } } } }`, { q: user.email });
    await gql(
      `{ ${mark.replace(/^\d/, 'a')}: user(id: "${id}") { n: name s: surname e: email x: externalId a: address } }`,
    );
    const list = '{ users(first: 100) { edges { node { name email } } } }';
    await p.call('GET', `/graphql?${new URLSearchParams({ query: `{ user(id: "${id}") { name } } # ${mark}` })}`, {
      token,
    });
    await p.call('POST', '/graphql', { token, json: [{ query: list }, { query: `{ user(id: "${id}") { email } }` }] });
    const agent = await connect(p, p.demo.client.client_secret);
    await agent.call('list_users', { search: user.email });
    await agent.call('list_users', { user_id: id });
    await agent.call('migrate_users', { users: [user], idempotency_key: randomUUID() });
    await agent[Symbol.asyncDispose]();
    const csv = `wallet_address,email,name\n${randomUUID()},${user.email},${user.name}\n`;
    const upload = { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: browserForm(csv) };
    const started = await (await fetch(`${p.url}/graphql`, upload)).json();
    const migration = { id: started.data.result.id };
    expect(await overSse(PROGRESS, migration)).toContain('"done":true');
    await vi.waitFor(async () => expect(await overSocket(PROGRESS, migration)).toContain(mark));
    expect(await overSse(PROGRESS, migration)).toContain(mark);
    expect(await overSocket(`query ($id: ID!) { user(id: $id) { name } }`, { id })).toContain(mark);
    await gql(`{ migration(id: "${migration.id}") { rows(first: 9) { edges { node { email } } } } }`);
    expect(await traces(mark)).toEqual(['audit_records', 'idempotent_answers', 'migration_rows', 'users']);
    const before = await rows(p).run((k) =>
      k.selectFrom('audit_records').selectAll().where('node_id', '=', p.demo.node_id),
    );

    // Its record may still be in the spool when the erasure begins.
    await operate(p, token, UserDocument, { id });
    const erased = await gql(
      `mutation ($id: ID!) { eraseUser(id: $id) { ... on User { id name surname email address externalId
      erasedAt erasure { erasedAt records responses } } } }`,
      { id: id.toUpperCase() },
    );
    const blank = { id, name: '', surname: '', email: '', address: '', externalId: null };
    const { erasedAt } = erased.json.data.eraseUser;
    const erasure = { erasedAt, records: expect.any(Number), responses: 3 };
    expect(erased.json.data.eraseUser).toEqual({ ...blank, erasedAt: expect.any(String), erasure });
    expect(await traces(mark)).toEqual([]);
    const after = await rows(p).run((k) => k.selectFrom('audit_records').selectAll().where('digests', 'is not', null));
    expect(after.length).toBe(erased.json.data.eraseUser.erasure.records);
    const LOST = { query: null, request_body: null, response_body: null, salts: null, digests: expect.any(Array) };
    for (const row of after) {
      expect(row.noted_users).toContain(id);
      const found = before.find((one) => one.id === row.id);
      if (found) expect(row).toEqual({ ...found, ...LOST });
    }
    expect(await migrate.one(user, keyed)).toMatchObject({ status: 201, text: '{}' });
  });

  it('D2-08 D7-10: search terms for a person are not stored or logged, before and after the erasure', async () => {
    const { mark, user } = person();
    const { json } = await migrate.one(user);
    const agent = await connect(p, p.demo.client.client_secret);
    const elsewhere = await p.clientToken(p.demo.other_node.client);
    const search = user.email;
    const inDocument = `{ users(filter: { search: ${JSON.stringify(search)} }, first: 3) { totalCount } }`;
    const inVariable = 'query ($q: String) { users(filter: { search: $q }) { edges { node { id } } } }';
    const inFilter = 'query ($f: UserFilter) { users(filter: $f) { edges { node { id } } } }';
    const variables = { f: { search } };
    const searches: (() => Promise<unknown>)[] = [
      () => gql(inDocument),
      () => gql(inVariable, { q: search }),
      () => gql(inFilter, variables, elsewhere),
      () => gql(inFilter, { f: { search, unknown: 1 } }),
      () => gql(inFilter, { f: { search: search.repeat(99) } }),
      () => p.call('POST', '/graphql', { token, json: [{ query: inDocument }, { query: inFilter, variables }] }),
      () => overSse(inFilter, variables),
      () => overSocket(inFilter, variables),
      () => agent.call('list_users', { search }),
      () => agent.call('list_users', { search: search.repeat(99) }),
      ...[
        { query: inDocument },
        { query: inFilter, variables: JSON.stringify(variables) },
        { query: '{ me { subject } }', search },
      ].map((query) => () => p.call('GET', `/graphql?${new URLSearchParams(query)}`, { token })),
      () => p.call('GET', `/v1/accounts?${new URLSearchParams({ search })}`, { token }),
    ];
    for (const each of searches) await each();
    await erase(json.id);
    for (const each of searches) await each();
    await agent[Symbol.asyncDispose]();
    expect(await traces(mark)).toEqual([]);
    expect(lines.filter((line) => line.includes(mark))).toEqual([]);
    const records = (await recordsOf('operation', 'users')).filter(({ digests }) => digests === null);
    expect(records.filter((record) => `${record.query}${record.request_body}`.includes('***')).length).toBeGreaterThan(
      9,
    );
  });

  it('D7-10: a repeated tool call whose stored result was erased gets the error erased, and does not run again', async () => {
    const { user } = person();
    const again = { users: [user], idempotency_key: randomUUID() };
    const call = () => post(p, p.demo.client.client_secret, callOf('migrate_users', again));
    const { json } = await call();
    await erase(json.result.structuredContent.rows.data[0].user_id);
    expect((await call()).json.result).toMatchObject({ isError: true, _meta: { error: { code: 'erased' } } });
  });

  it('D7-10: a repeated keyed mutation whose stored result was erased gets an error that asks for a new key', async () => {
    const { user } = person();
    const input = { walletAddress: user.wallet_address, email: user.email };
    const query = `mutation ($input: MigrateUserInput!) { migrateUser(input: $input) { ... on User { id } } }`;
    const keyed = { token, json: { query, variables: { input } }, headers: { 'idempotency-key': randomUUID() } };
    const call = () => p.call('POST', '/graphql', keyed);
    const { json } = await call();
    await erase(json.data.migrateUser.id);
    const again = await call();
    expect(again.json.data).toBeNull();
    expect(again.json.errors).toMatchObject([
      { extensions: { code: 'ERASED' }, message: expect.stringMatching(/erased.*a new key/) },
    ]);
  });

  it('D7-10: changes only bodies and URL queries of the audit records that mention the user', async () => {
    const elsewhere = await p.clientToken(p.demo.other_node.client);
    const rules = rulesOf(p, token);
    const rule = await rules.created(limit({ name: p.demo.client.client_id }));
    const victims = [p.demo.wallet_id, p.demo.client.client_id, p.demo.transactions.token_transactions, '/v1/accounts'];
    const { token_transactions: transaction } = p.demo.transactions;
    const notification = { data: { id: transaction, status: 2, type: 1 } };
    await p.call('POST', '/v2/webhooks/custodial', { json: notification });
    await p.call('GET', `/v1/accounts?wallet=${p.demo.wallet_id}`, {
      token,
      headers: { 'x-correlation-id': p.demo.wallet_id },
    });
    await p.call('GET', `/v1/accounts?of=${p.demo.wallet_id}`, { token: elsewhere });
    await p.service.context.auditWriter.flush();
    const TABLES = ['audit_records', 'wallet_rules', 'wallet_rule_versions', 'clients', 'supervisors', 'transactions'];
    const found = async () => {
      const all = new Map<string, object[]>();
      for (const table of TABLES) {
        const known = await rows(p).raw(
          (sql) => sql<object>`select to_jsonb(t) - 'last_used_at' as row from ${sql.id(table)} t`,
        );
        all.set(
          table,
          known.map(({ row }: { row?: object }) => row ?? {}),
        );
      }
      return all;
    };
    const users: string[] = [];
    for (const [index, external_id] of victims.entries()) {
      const { json } = await migrate.one({
        wallet_address: victims[index + 1] ?? 'w',
        external_id,
        email: external_id,
        name: external_id,
        surname: external_id,
      });
      users.push(json.id);
    }
    const before = await found();
    for (const id of users) await erase(id);
    const after = await found();
    for (const [table, was] of before) {
      const now = new Map((after.get(table) ?? []).map((row) => [JSON.stringify(keyOf(row)), row]));
      for (const row of was) {
        const left = now.get(JSON.stringify(keyOf(row))) ?? {};
        const noted =
          'noted_users' in row && Array.isArray(row.noted_users) && row.noted_users.some((id) => users.includes(id));
        const LOST = { query: null, request_body: null, response_body: null, salts: null, digests: expect.any(Array) };
        expect(left).toEqual(noted ? { ...row, ...LOST } : row);
      }
    }
    expect((await versionsOf(p.service.context.database, rule))[0]).toMatchObject({ name: p.demo.client.client_id });
  });

  it('D7-10: a record of a mutation with several fields keeps its operation, client and digests', async () => {
    const { mark, user } = person();
    const document = `mutation ($x: String) {
      ...Both
      mark: createClient(input: {name: "${mark}", grantTypes: [CLIENT_CREDENTIALS], scopes: []}) { __typename }
    } fragment Both on Mutation { ${mark.replace(/^\d/, 'a')}: migrateUser(input: {walletAddress: "${user.wallet_address}", externalId: $x}) { ... on User { id } } }`;
    const { json } = await gql(document, { x: user.external_id });
    const [id] = Object.values<{ id?: string }>(json.data).flatMap((one) => one.id ?? []);
    await erase(id ?? '');
    const [record, ...others] = await recordsOf('operation', 'migrateUser, createClient');
    expect(others).toEqual([]);
    expect(record).toMatchObject({ request_body: null, client_id: p.demo.client.client_id, noted_users: [id] });
    expect(record?.subject).toBe(p.demo.client.client_id);
    expect(record?.digests).toHaveLength(3);
  });

  it('D7-10: housekeeping erases audit records that arrive late, and none of requests after the erasure', async () => {
    const { user } = person();
    const { json } = await migrate.one(user);
    await erase(json.id);
    const { auditErasure, database } = p.service.context;
    const [template] = await recordsOf('operation', '/v2/users/migrate/with-wallet');
    const { position: _position, ...record } = template ?? expect.fail('there is one');
    const [late, later] = [randomUUID(), randomUUID()];
    const hour = 3_600_000;
    for (const [id, atMs] of [
      [late, Date.now() - 1_000],
      [later, Date.now() + hour],
    ] as const) {
      const values = {
        ...record,
        id,
        at: new Date(atMs).toISOString(),
        digests: null,
        request_body: 'x',
        noted_users: [json.id],
      };
      await database.db
        .unscoped('test')
        .run((k) =>
          k.insertInto('audit_records').values({ ...values, headers: {}, chain_id: null, chain_index: null }),
        );
    }
    await auditErasure.repeat(Date.now() - hour);
    const bodies = await rows(p).run((k) =>
      k.selectFrom('audit_records').select(['id', 'request_body']).where('id', 'in', [late, later]),
    );
    expect(Object.fromEntries(bodies.map((row) => [row.id, row.request_body]))).toEqual({ [late]: null, [later]: 'x' });
  });

  it('D7-10: erases a user with names of maximum length in few statements', async () => {
    const { user } = person();
    const { json } = await migrate.one(user);
    const name = 'Zoë O.\\ '.repeat(128);
    await rows(p).run((k) => k.updateTable('users').set({ name, surname: name }).where('id', '=', json.id));
    for (let count = 0; count < 3; count += 1) await gql(`{ user(id: "${json.id}") { name surname } }`);
    const { db } = p.service.context.database;
    const statements: string[] = [];
    const unscoped = db.unscoped.bind(db);
    vi.spyOn(db, 'unscoped').mockImplementation((reason) => {
      statements.push(reason);
      return unscoped(reason);
    });
    const erased = await gql(`mutation { eraseUser(id: "${json.id}") { ... on User { erasure { records } } } }`);
    vi.restoreAllMocks();
    expect(erased.json.data.eraseUser.erasure.records).toBe(4);
    expect(statements.filter((reason) => reason.startsWith('the function erases')).length).toBeLessThanOrEqual(6);
  });

  it('D7-10: removes the person from records of requests that returned audit records', async () => {
    const { mark, user } = person();
    const { json } = await migrate.one(user);
    await p.service.context.auditWriter.flush();
    for (const selection of ['requestBody responseBody query', 'a: requestBody b: responseBody c: query', '...F'])
      expect(
        (
          await gql(
            `{ auditRecords(first: 1) { edges { node { id ${selection} } } } } ${
              selection === '...F' ? 'fragment F on AuditRecord { requestBody x: responseBody }' : ''
            }`,
          )
        ).json.errors,
      ).toBeUndefined();
    await erase(json.id);
    expect(await traces(mark)).toEqual([]);
  });

  it('D7-10: searches for the audit records of a user once, however many there are', async () => {
    const { user } = person();
    const { json } = await migrate.one(user);
    await recordsOf('path', '/graphql');
    await rows(p).raw(
      (sql) => sql`
        insert into audit_records (at, id, node_id, correlation_id, method, path, status_code, elapsed, headers,
          remote_address, real_ip, request_bytes, response_bytes, is_api, noted_users, response_body)
        select now(), gen_random_uuid(), ${p.demo.node_id}, 'many', 'GET', '/', 200, 1, '{}', '::1', '::1', 0, 0, true,
          array[${json.id}::uuid], 'x' from generate_series(1, 600)`,
    );
    const { db } = p.service.context.database;
    const searches: string[] = [];
    const unscoped = db.unscoped.bind(db);
    vi.spyOn(db, 'unscoped').mockImplementation((reason) => {
      const door = unscoped(reason);
      const raw: typeof door.raw = (make) =>
        door.raw((sql) =>
          make(
            Object.assign((strings: TemplateStringsArray, ...values: unknown[]) => {
              if (strings.join('').includes('noted_users @>')) searches.push(strings.join(''));
              return sql(strings, ...values);
            }, sql) as typeof sql,
          ),
        );
      return { ...door, raw, run: door.run.bind(door) };
    });
    expect(await p.service.context.auditErasure.erase(json.id)).toBeGreaterThanOrEqual(600);
    vi.restoreAllMocks();
    expect(searches).toHaveLength(1);
  });

  it('D7-10: needs users:erase, which an operator lacks', async () => {
    const { user } = person();
    const { json } = await migrate.one(user);
    const forbidden = { __typename: 'ForbiddenError', message: expect.any(String), permission: 'users:erase' };
    const { current } = p.service.context.secrets.jwt.legacy;
    const scope = 'users:read users:migrate clients:manage audit:read';
    const by = signed(p, apiClaims(p, { token_use: undefined, scope }), { secret: current });
    expect(await erase(json.id, by)).toEqual(forbidden);
    expect(permissionsOfRole('operator')).not.toContain('users:erase');
    expect(permissionsOfRole('admin')).toContain('users:erase');
  });

  it('D7-09: the receipt is returned with the user and names who erased it; a second erasure adds to its counts', async () => {
    const { user } = person();
    const { json } = await migrate.one(user, { 'idempotency-key': randomUUID() });
    const read = async () => (await operate(p, token, UserDocument, { id: json.id })).user;
    expect(await read()).toMatchObject({ erasedAt: null, erasure: null });
    const first = await erase(json.id);
    if (first.__typename !== 'User') throw new Error(JSON.stringify(first));
    expect(first.erasure).toMatchObject({ responses: 1, by: p.demo.client.client_id, erasedAt: first.erasedAt });
    const records = first.erasure?.records ?? 0;
    expect(records).toBeGreaterThanOrEqual(2);
    expect((await read())?.erasure).toEqual(first.erasure);
    const { users } = await operate(p, token, UsersDocument, { last: 1 });
    expect(users.edges[0]?.node).toMatchObject({ id: json.id, erasure: first.erasure });
    const { access_token: ofSupervisor } = await loginOfDemo(p);
    const again = await erase(json.id, ofSupervisor);
    if (again.__typename !== 'User') throw new Error(JSON.stringify(again));
    const me = await p.call('POST', '/graphql', { token: ofSupervisor, json: { query: '{ me { subject } }' } });
    expect(again.erasure).toMatchObject({ responses: 1, by: me.json.data.me.subject, erasedAt: again.erasedAt });
    expect(again.erasure?.records).toBeGreaterThan(records);
    expect((await read())?.erasure).toEqual(again.erasure);
  });

  /** Erases a user of the demo node as another process does, with its own mutex. */
  function eraseElsewhere(id: string, by: string, auditSettled: () => Promise<void>) {
    const { auditErasure, idempotentResponses, nowMs, database } = p.service.context;
    const { db } = database;
    const service = new UserErasure({ db, auditErasure, idempotentResponses, nowMs, auditSettled });
    const author = { nodeId: p.demo.node_id, subject: by, clientId: undefined, correlationId: 'elsewhere' };
    return service.erase(p.demo.node_id, id, author);
  }

  async function receiptIn(id: string) {
    const { user } = await operate(p, token, UserDocument, { id });
    return user?.erasure;
  }

  /** The numbers of records and responses of a user that are erased. */
  async function erasedOf(id: string) {
    const [records, responses] = await Promise.all([
      rows(p).raw(
        (sql) => sql`select from audit_records where noted_users @> array[${id}::uuid] and digests is not null`,
      ),
      rows(p).raw((sql) => sql`select from idempotent_answers where noted_users @> array[${id}::uuid] and body = '{}'`),
    ]);
    return { records: records.length, responses: responses.length };
  }

  it('D7-09: two processes that erase a user at once both count in the receipt, which names the later one', async () => {
    const { user } = person();
    const { json } = await migrate.one(user, { 'idempotency-key': randomUUID() });
    await p.service.context.auditWriter.flush();
    const [settling, settled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = eraseElsewhere(json.id, 'alice', () => {
      settling.resolve();
      return settled.promise;
    });
    await settling.promise;
    const between = await erasedOf(json.id);
    await rows(p).raw(
      (sql) => sql`update idempotent_answers set body = '[]' where noted_users @> array[${json.id}::uuid]`,
    );
    await operate(p, token, UserDocument, { id: json.id });
    await p.service.context.auditWriter.flush();
    await eraseElsewhere(json.id, 'mallory', async () => undefined);
    settled.resolve();
    await first;
    const { records } = await erasedOf(json.id);
    expect(records).toBeGreaterThan(between.records);
    expect(between).toEqual({ records: expect.any(Number), responses: 1 });
    expect(await receiptIn(json.id)).toMatchObject({ by: 'mallory', records, responses: 2 });
  });

  it('D7-09: an erasure that fails halfway updates time and subject of the receipt and keeps its counts', async () => {
    const { user } = person();
    const { json } = await migrate.one(user, { 'idempotency-key': randomUUID() });
    const stop = async () => {
      throw new Error('stopped');
    };
    await expect(eraseElsewhere(json.id, 'alice', stop)).rejects.toThrow('stopped');
    expect(await receiptIn(json.id)).toBeNull();
    await eraseElsewhere(json.id, 'alice', async () => undefined);
    const before = await receiptIn(json.id);
    expect(before).toMatchObject({ by: 'alice', responses: 1 });
    await expect(eraseElsewhere(json.id, 'mallory', stop)).rejects.toThrow('stopped');
    const after = await receiptIn(json.id);
    expect(after).toEqual({ ...before, by: 'mallory', erasedAt: expect.any(String) });
    expect(after?.erasedAt).not.toBe(before?.erasedAt);
  });

  it('D7-09: a user erased by an earlier version has no receipt', async () => {
    const { json } = await migrate.one(person().user);
    const erased_at = new Date().toISOString();
    await rows(p).run((k) => k.updateTable('users').set({ erased_at }).where('id', '=', json.id));
    const { user } = await operate(p, token, UserDocument, { id: json.id });
    expect(user).toMatchObject({ erasedAt: erased_at, erasure: null });
  });

  it('D7-09: a subject over the maximum length is truncated in the receipt', async () => {
    const { json } = await migrate.one(person().user);
    const { current } = p.service.context.secrets.jwt.legacy;
    const claims = { token_use: undefined, sub: 's'.repeat(1_100), scope: 'users:read users:erase' };
    const erased = await erase(json.id, signed(p, apiClaims(p, claims), { secret: current }));
    expect(erased).toMatchObject({ __typename: 'User', erasure: { by: 's'.repeat(1_024) } });
  });

  it('D7-09: a second erasure changes nothing else, and the identifiers are free for another user', async () => {
    const { user } = person();
    const { json } = await migrate.one(user);
    const first = await erase(json.id);
    expect(await erase(json.id)).toEqual({ ...first, erasedAt: expect.any(String), erasure: expect.any(Object) });
    expect(await erase((await migrate.one({ ...person().user })).json.id)).toMatchObject({ __typename: 'User' });
    const again = await migrate.one(user);
    expect(again.status).toBe(201);
    expect(again.json.id).not.toBe(json.id);
    expect((await operate(p, token, UserDocument, { id: again.json.id })).user?.email).toBe(user.email);
  });

  it('D7-09: the counters and outcomes of migrations remain, and other users are not affected', async () => {
    const [one, other] = [person(), person()];
    const { json } = await migrate.many([one.user, other.user]);
    await erase(json.results[0].user_id);
    const { migrations } = await operate(p, token, MigrationsDocument, { first: 1 });
    expect(migrations.edges[0]?.node).toMatchObject({ total: 2, success: 2 });
    const found = await operate(p, token, UserDocument, { id: json.results[1].user_id });
    expect(found.user).toMatchObject({ email: other.user.email, name: other.user.name });
    expect(await traces(other.mark)).toContain('migration_rows');
  });

  it('D7-09: rows of release 0.1.0 without user ids are matched by email and external id', async () => {
    const { mark, user } = person();
    const { json } = await migrate.one(user);
    await migrate.raw(BULK, JSON.stringify({ users: [user, { ...user, email: `b${user.email}` }] }));
    await rows(p).run((k) => k.updateTable('migration_rows').set({ noted_users: null }));
    await erase(json.id);
    expect(await traces(mark)).toEqual([]);
  });

  it('D7-09 D7-03: an id that is missing, malformed or of another node erases nothing', async () => {
    const { mark, user } = person();
    const { json } = await migrate.one(user);
    const elsewhere = await p.clientToken(p.demo.other_node.client);
    for (const [id, by] of [
      [json.id, elsewhere],
      [MISSING, token],
      ['x', token],
    ]) {
      expect(await erase(id, by)).toEqual({ __typename: 'NotFoundError', message: 'not found' });
    }
    expect(await traces(mark)).toContain('users');
  });
});

function keyOf(row: object): unknown[] {
  const { id, node_id, rule_id, version, at }: Record<string, unknown> = { ...row };
  return [id, node_id, rule_id, version, at];
}
