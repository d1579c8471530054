import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MISSING, operate } from '../graphql/administration.ts';
import { EraseUserDocument, MigrationsDocument, UserDocument } from '../graphql/generated/graphql.ts';
import { type Portcullis, startPortcullis } from '../harness.ts';
import { rows } from '../oauth/clients.ts';
import { BULK, migrationsOf, SINGLE } from '../user-migrations/calls.ts';

let p: Portcullis;
let token: string;
let migrate: Awaited<ReturnType<typeof migrationsOf>>;

beforeAll(async () => {
  p = await startPortcullis();
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
