import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { walletRuleInput } from '../../src/domain/wallet-rules/wallet-rule.input.ts';
import { MISSING, operate } from '../graphql/administration.ts';
import { EraseUserDocument, MigrationsDocument, UserDocument } from '../graphql/generated/graphql.ts';
import { type Portcullis, startEmbedded, startPortcullis } from '../harness.ts';
import { rows } from '../oauth/clients.ts';
import { apiClaims, signed } from '../oauth/jwt.ts';
import { BULK, migrationsOf, SINGLE } from '../user-migrations/calls.ts';
import { limit, rulesOf } from '../wallet-rules/rules.ts';
import { newestOf, versionsOf } from '../wallet-rules/versions.ts';

let p: Portcullis;
let token: string;
let migrate: Awaited<ReturnType<typeof migrationsOf>>;

beforeAll(async () => {
  // PostgreSQL is soon done with it.
  p = await (inject('isThorough') ? startEmbedded() : startPortcullis());
  token = await p.clientToken();
  migrate = await migrationsOf(p, token);
});
afterAll(() => p[Symbol.asyncDispose]());

/** A person with a mark in each of the personal members, in letters that JSON can escape. */
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

/** Everything that the database has of a mark, by table; what is on its way to the KYC service has its own life. */
async function traces(mark: string): Promise<string[]> {
  const door = rows(p);
  const tables = await door.raw(
    (sql) => sql<{
      name: string;
    }>`select table_name as name from information_schema.tables where table_schema = 'public'
      and table_name not in ('outbox', 'bus_messages')`,
  );
  const found = [];
  for (const { name } of tables) {
    const hits = await door.raw(
      (sql) => sql`select 1 from ${sql.id(name)} t where to_jsonb(t)::text ilike ${`%${mark}%`} limit 1`,
    );
    if (hits.length > 0) found.push(name);
  }
  return found;
}

/** A record in whatever letters it was written. */
function decoded(text: string): string {
  let plain = text.replace(/\\+u([0-9a-f]{4})/gi, (_all, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  for (let time = 0; time < 3; time += 1)
    plain = plain.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString());
  return plain;
}

async function erase(id: string, by = token) {
  return (await operate(p, by, EraseUserDocument, { id })).result;
}

describe('erasing a user', () => {
  it('D7-09: leaves nothing of the person in users, migrations, kept answers and audit records', async () => {
    const { mark, user } = person();
    const keyed = { 'idempotency-key': randomUUID() };
    const { json } = await migrate.one(user, keyed);
    await migrate.one(user);
    const bulkKey = { 'idempotency-key': randomUUID() };
    const neighbour = { wallet_address: randomUUID(), email: `${randomUUID()}@x.y`, name: 'Neighbour' };
    const bulk = JSON.stringify({ users: [user, { ...neighbour }, { ...user, email: user.email.toUpperCase() }] });
    await migrate.raw(BULK, bulk, bulkKey);
    const escaped = JSON.stringify(user).replace(
      /[^\x20-\x7e]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    await migrate.raw(SINGLE, escaped);
    const literal = `mutation { migrateUser(input: {walletAddress: "w", externalId: ${JSON.stringify(user.external_id)}, name: ${JSON.stringify(user.name)}}) { __typename } }`;
    await p.call('POST', '/graphql', { token, json: { query: literal } });
    // As writers do that escape more than JSON asks for.
    const unasked = JSON.stringify(user).replace(/[-@+'a-f]/g, (unit) => `\\u00${unit.charCodeAt(0).toString(16)}`);
    await migrate.raw(SINGLE, unasked);
    const search = `{ users(filter: {search: ${JSON.stringify(user.email)}}) { totalCount } }`;
    await p.call('GET', `/graphql?${new URLSearchParams({ query: search })}`, { token });
    await p.call('GET', `/v1/accounts?email=${encodeURIComponent(user.email).toLowerCase()}`, { token });
    await p.call('GET', `/v1/accounts?x=${encodeURIComponent(user.external_id)}&limit=1`, { token });
    await p.call('POST', '/graphql', {
      token,
      json: { query: `{ u: user(id: "${json.id}") { n: name s: surname e: email x: externalId a: address } }` },
    });
    await p.service.context.auditWriter.flush();
    expect(await traces(mark)).toEqual(
      expect.arrayContaining(['audit_records', 'idempotent_answers', 'migration_rows', 'users']),
    );

    // Its record may still be in the spool when the erasure begins.
    await operate(p, token, UserDocument, { id: json.id });
    const erased = await erase(json.id.toUpperCase());
    expect(erased).toMatchObject({
      __typename: 'User',
      id: json.id,
      name: '',
      surname: '',
      email: '',
      address: '',
      externalId: null,
    });
    expect(await traces(mark)).toEqual([]);

    const again = await migrate.one(user, keyed);
    expect(again).toMatchObject({ status: 201, json: { id: json.id, email: '', name: '', surname: '', address: '' } });
    const bulkAgain = await migrate.raw(BULK, bulk, bulkKey);
    expect(bulkAgain.json.results[1].email).toBe(neighbour.email);
    expect(bulkAgain.text).not.toContain(mark);
    const kept = await rows(p).run((k) =>
      k.selectFrom('audit_records').select('request_body').where('request_body', 'like', '%Neighbour%'),
    );
    expect(kept.length).toBeGreaterThan(0);
  });

  it('D7-10: blanks what any column of a record shows, where one of them names the user', async () => {
    const name = `Qo${randomUUID().replaceAll(/[^a-f]/g, '')}naë`;
    const surname = `${name.toUpperCase()} Y'Vez`;
    const { mark, user } = person();
    const { json } = await migrate.one({ ...user, name, surname });
    const id: string = json.id;
    const others = Array.from({ length: 60 }, (_, index) => ({ ...person().user, surname: `Other ${index} ${mark}` }));
    await migrate.many(others);
    const part = name.slice(0, -1);
    const fields = 'id n: name s: surname';
    const gql = (query: string, variables?: object) =>
      p.call('POST', '/graphql', { token, json: { query, variables } });
    const get = (path: string, headers: Record<string, string> = {}) => p.call('GET', path, { token, headers });
    const tool = (tool: string, args: object) =>
      p.call('POST', '/v2/mcp', {
        token: p.demo.client.client_secret,
        json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: args } },
        headers: { accept: 'application/json, text/event-stream' },
      });
    const list = `users(first: 10, filter: {search: $q}) { edges { node { ${fields} } } }`;
    const calls = [
      gql(`{ user(id: "${id}") { n: name } }`),
      gql(`query ($id: ID!) { ${name.slice(0, 6)}: user(id: $id) { n: name } }`, { id }),
      gql(`query ($q: String) { ${list} }`, { q: part }),
      gql(`{ ${list.replace('$q', JSON.stringify(part.toUpperCase()))} }`),
      gql(`{ ${list.replace('$q', `"\\u00${part.charCodeAt(0).toString(16)}${part.slice(1)}"`)} }`),
      get(`/graphql?${new URLSearchParams({ query: `{ ${list.replace('$q', JSON.stringify(surname))} }` })}`),
      get(`/graphql?query=${encodeURIComponent(`{user(id:"${id}"){name}}`)}`),
      get(`/v1/accounts?user=${id}&name=${encodeURIComponent(name)}`),
      get(`/v1/accounts?user=${id}&q=${[...Buffer.from(name)].map((byte) => `%${byte.toString(16)}`).join('')}`),
      get(`/v1/accounts?user=${id}&q=${encodeURIComponent(encodeURIComponent(name))}`),
      get(`/v1/accounts?q=${new URLSearchParams({ q: surname })}`, { referer: `https://console/users/${id}` }),
      get(`/v1/nobody/${encodeURIComponent(surname)}?of=${encodeURIComponent(user.email)}`),
      get(`/v1/accounts?of=${id}`, { referer: `https://console/?search=${encodeURIComponent(part)}` }),
      get(`/v1/accounts?of=${id}`, { 'x-correlation-id': `import of ${name}` }),
      migrate.one({ ...user, name, surname, email: `other-${user.email}` }),
      tool('list_users', { search: part }),
      tool('get_user', { user_id: id }),
      gql(`{ users(first: 100) { edges { node { ${fields} email } } } }`),
    ];
    await Promise.all(calls);
    // What no token came with is of no node.
    await p.call('GET', `/v1/accounts?email=${encodeURIComponent(user.email)}&name=${encodeURIComponent(name)}`);
    await erase(id);
    await p.service.context.auditWriter.flush();
    const records = await rows(p).raw<{ text: string }>(
      (sql) => sql`select to_jsonb(r)::text as text from audit_records r`,
    );
    const shows = new RegExp(name.slice(0, -1), 'i');
    const telling = records.map(({ text }) => decoded(text)).filter((text) => shows.test(text));
    expect(telling).toEqual([]);
    const listed = records.find(({ text }) => text.includes('users(first: 100)'));
    expect([listed?.text.match(/Other \d+/g)?.length, listed?.text.includes(id)]).toEqual([60, true]);
  });

  it('D7-10: a short external id names the user where it stands as a word', async () => {
    const { mark, user } = person();
    const externalId = `Q${randomUUID().replaceAll(/\D/g, '').slice(0, 4)}`;
    const { json } = await migrate.one({ ...user, external_id: externalId });
    const search = (text: string) => `{users(filter:{search:"${text}"}){edges{node{name surname}}}}`;
    const gql = (query: string, variables?: object) =>
      p.call('POST', '/graphql', { token, json: { query, variables } });
    const get = (path: string, headers: Record<string, string> = {}) => p.call('GET', path, { token, headers });
    await Promise.all([
      gql(search(externalId)),
      gql(search(externalId.toLowerCase())),
      gql(search(`\\u0051${externalId.slice(1)}`)),
      gql('query($q:String){users(filter:{search:$q}){edges{node{name surname}}}}', { q: externalId }),
      get(`/graphql?${new URLSearchParams({ query: search(externalId) })}`),
      get(`/graphql?query=${encodeURIComponent(search(`%${externalId}`).replace('%', ''))}`),
      get(`/v1/accounts?x=%${externalId.charCodeAt(0).toString(16)}${externalId.slice(1)}&name=${mark}`),
      get(`/v1/accounts?name=Zo%C3%AB+${mark}`, { 'x-correlation-id': `ext ${externalId}` }),
      get(`/v1/accounts?of=${externalId}`, { referer: `https://console/?name=Zo%C3%AB%20${mark}` }),
    ]);
    await get('/v1/accounts?as=a-part', { 'x-correlation-id': `x${externalId}9 Zoë ${mark}`.replace('ë', 'e') });
    await erase(json.id);
    await p.service.context.auditWriter.flush();
    const records = await rows(p).raw<{ text: string }>(
      (sql) => sql`select to_jsonb(r)::text as text from audit_records r`,
    );
    const texts = records.map(({ text }) => decoded(text));
    const telling = texts.filter((text) => text.includes(mark) || new RegExp(`\\b${externalId}\\b`, 'i').test(text));
    expect(telling.map((text) => /as=a-part/.test(text))).toEqual([true]);
  });

  it('D7-10 D10-04: looks through the records in windows, by the index of their node', async () => {
    const { user } = person();
    const { json } = await migrate.one(user);
    const [row] = await rows(p).run((k) =>
      k.selectFrom('audit_records').selectAll().where('node_id', '=', p.demo.node_id).limit(1),
    );
    if (!row) throw new Error('there is one');
    const many = Array.from({ length: 450 }, () => ({ ...row, id: randomUUID(), path: `/v1/of/${user.email}` }));
    for (const slice of [many.slice(0, 225), many.slice(225)])
      await rows(p).run((k) => k.insertInto('audit_records').values(slice));
    await erase(json.id);
    const left = await rows(p).run((k) =>
      k
        .selectFrom('audit_records')
        .select('path')
        .where(
          'id',
          'in',
          many.map(({ id }) => id),
        ),
    );
    expect(left.map(({ path }) => path)).toEqual(Array(450).fill('***'));
    const plan = await p.service.context.database.db.transaction(async () => {
      // Of so few rows a server may read all.
      await rows(p).raw((sql) => sql`set local enable_seqscan = off`);
      return rows(p).raw<{ 'QUERY PLAN': string }>(
        (sql) => sql`explain select at, id from audit_records where node_id = ${p.demo.node_id}
          and (at, id) > ('2026-01-01', ${randomUUID()}::uuid) order by at, id limit 200`,
      );
    });
    expect(plan.map((line) => line['QUERY PLAN']).join('\n')).toMatch(/Index Cond: .*node_id = .* AND .*at, id/);
  });

  it('D7-09 D5-09: leaves nothing of the person in wallet rules and the history of who wrote them', async () => {
    const { mark, user } = person();
    const { json } = await migrate.one({ ...user, external_id: 'Weekly' });
    const correlated = { 'x-correlation-id': `of-${encodeURIComponent(user.email)}` };
    const rules = rulesOf(p, token);
    const legacy = { sub: user.email, client_id: undefined, token_use: undefined, scope: 'wallet-rules:write' };
    const { current } = p.service.context.secrets.jwt.legacy;
    const byThePerson = rulesOf(p, signed(p, apiClaims(p, legacy), { secret: current }));
    const approved = { mandatory_user_id: json.id };
    const named = await rules.created(limit({ name: `Payout to ${user.wallet_address}` }));
    await rules.replace(named, limit({ name: `For ${user.email.toUpperCase()}` }));
    const author = { nodeId: p.demo.node_id, subject: json.id, clientId: undefined, correlationId: 'approving' };
    const content = walletRuleInput.parse(
      limit({ name: `Allowance, ${user.surname}`, sign_and_approve_rule: approved }),
    );
    const approving = (await p.service.context.walletRules.create(author, p.demo.wallet_id, content)).id;
    const written = await byThePerson.created(limit({ name: 'Weekly limit' }));
    const path = `/v1/wallets/${p.demo.wallet_id}/rules/${written}`;
    const headers = { 'x-target-server': 'wallet-rules', ...correlated };
    await p.call('PUT', path, { token, headers, json: limit({ name: 'Weekly maximum' }) });
    const ids = [named, approving, written];
    const before = await Promise.all(ids.map((id) => versionsOf(p.service.context.database, id)));
    expect(await traces(mark)).toEqual(expect.arrayContaining(['wallet_rules', 'wallet_rule_versions']));

    await erase(json.id);
    expect(await traces(mark)).toEqual([]);
    const after = await Promise.all(ids.map((id) => versionsOf(p.service.context.database, id)));
    const blank = (versions: (typeof before)[number], changes: object[]) =>
      versions.map((version, at) => ({ ...version, ...changes[at] }));
    const unknown = { subject: null, client_id: null, correlation_id: null };
    const newest = await Promise.all(ids.map((id) => newestOf(p.service.context.database, id)));
    expect(after).toEqual([
      [...blank(before[0] ?? [], [{ name: '***' }, { name: '***' }]), { ...newest[0], ...unknown, version: 3 }],
      [...blank(before[1] ?? [], [{ name: '***' }]), { ...newest[1], ...unknown, version: 2 }],
      blank(before[2] ?? [], [{ subject: '***' }, { correlation_id: '***' }]),
    ]);
    expect(newest).toMatchObject([
      { name: '***' },
      { name: '***', sign_and_approve_rule: approved },
      { name: 'Weekly maximum' },
    ]);

    await erase(json.id);
    expect(await Promise.all(ids.map((id) => versionsOf(p.service.context.database, id)))).toEqual(after);
  });

  it('D7-09: once more changes nothing; the identifiers are free for another user', async () => {
    const { user } = person();
    const { json } = await migrate.one(user);
    const first = await erase(json.id);
    expect(await erase(json.id)).toEqual(first);
    expect(await erase((await migrate.one({ ...person().user })).json.id)).toMatchObject({ __typename: 'User' });
    const again = await migrate.one(user);
    expect(again.status).toBe(201);
    expect(again.json.id).not.toBe(json.id);
    expect((await operate(p, token, UserDocument, { id: again.json.id })).user?.email).toBe(user.email);
  });

  it('D7-09: the counters and outcomes of migrations stay, and so does every other user', async () => {
    const [one, other] = [person(), person()];
    const { json } = await migrate.many([one.user, other.user]);
    await erase(json.results[0].user_id);
    const { migrations } = await operate(p, token, MigrationsDocument, { first: 1 });
    expect(migrations.edges[0]?.node).toMatchObject({ total: 2, success: 2 });
    const found = await operate(p, token, UserDocument, { id: json.results[1].user_id });
    expect(found.user).toMatchObject({ email: other.user.email, name: other.user.name });
    expect(await traces(other.mark)).toContain('migration_rows');
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
