import { beforeAll, describe, expect, it } from 'vitest';
import { usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { BULK, migrationsOf, newUser, SINGLE } from '../support/user-migrations/calls.ts';

const p = usePortcullis();
let migrate: Awaited<ReturnType<typeof migrationsOf>>;

beforeAll(async () => {
  migrate = await migrationsOf(p);
});

const KINDS = ['5', '1234567890123456789012345678901234567890', '1e999', 'true', '["w"]', '{"w":1}'];
const UNSTORABLE = ['"a\\u0000b"', '"w\\ud800"'];

/** Members with JSON texts that are not valid for one user, and for each row of many. */
const MEMBERS: [member: string, json: string[]][] = [
  ['wallet_address', [...KINDS, ...UNSTORABLE, '', 'null', '""', '" \\t\\n\\u00a0 "']],
  ['email', KINDS],
  ['external_id', KINDS],
  ['name', KINDS],
  ['surname', KINDS],
  ['kyc_sent', ['"true"', '1', '[true]']],
];

/** Members that fail one row of many (bulk.test.ts), and refuse a single user. */
const OF_ONE: typeof MEMBERS = [
  ['wallet_address', [`"${'w'.repeat(129)}"`]],
  ['email', [...UNSTORABLE, `"${'e'.repeat(513)}"`]],
  ['external_id', [...UNSTORABLE, `"${'x'.repeat(513)}"`]],
  ['name', UNSTORABLE],
  ['surname', UNSTORABLE],
];

function userJson(member: string, json: string): string {
  const { [member as 'email']: _left, ...rest } = newUser({
    name: 'N',
    surname: 'S',
    external_id: crypto.randomUUID(),
  });
  const given = JSON.stringify(rest);
  return json === '' ? given : `${given.slice(0, -1)},"${member}":${json}}`;
}

async function refusedAt(path: string, body: string, at: string): Promise<void> {
  const before = await count();
  const answer = await migrate.raw(path, body);
  expect(answer.status).toBe(400);
  expect(answer.json).toMatchObject({ code: -1, domain: 0, message: 'invalid_request' });
  expect(answer.json.errors.map((issue: { path: string }) => issue.path)).toEqual([at]);
  expect(await count()).toEqual(before);
}

async function count() {
  const [users, migrations] = await Promise.all(
    (['users', 'migrations'] as const).map((table) => rows(p).run((k) => k.selectFrom(table).select('id'))),
  );
  return [users?.length, migrations?.length];
}

describe('an invalid body', () => {
  it.each([...MEMBERS, ...OF_ONE])(
    '4.6-02 D7-02 D2-22: a bad %s of one user is a 400 that names it',
    async (member, texts) => {
      for (const json of texts) await refusedAt(SINGLE, userJson(member, json), member);
    },
  );

  it.each(MEMBERS)('D7-05 7.5-01: a bad %s in a bulk request is a 400 that names the row', async (member, texts) => {
    const good = JSON.stringify(newUser());
    for (const json of texts) {
      await refusedAt(BULK, `{"users":[${good},${good},${userJson(member, json)}]}`, `users[2].${member}`);
    }
  });

  it.each([
    ['no users', '{}', 'users'],
    ['null users', '{"users":null}', 'users'],
    ['an empty array', '{"users":[]}', 'users'],
    ['an object of users', '{"users":{"0":{}}}', 'users'],
    ['a text of users', '{"users":"[]"}', 'users'],
    ['501 rows', JSON.stringify({ users: Array.from({ length: 501 }, () => newUser()) }), 'users'],
    ['20,000 rows that are numbers', JSON.stringify({ users: Array.from({ length: 20_000 }, () => 0) }), 'users'],
    ['a null row', '{"users":[null]}', 'users[0]'],
    ['a text as a row', '{"users":["a"]}', 'users[0]'],
    ['an array as a row', '{"users":[[]]}', 'users[0]'],
    ['an array as the body', '[]', ''],
    ['null as the body', 'null', ''],
    ['a text as the body', '"users"', ''],
  ])('7.5-01 4.7-02: a bulk request with %s is a 400 that names it', async (_name, body, at) => {
    await refusedAt(BULK, body, at);
  });

  it('D2-14: a body over its limit is a 400: 1 MiB for one user, 2 MiB for many', async () => {
    const long = (bytes: number) => JSON.stringify({ ...newUser(), unknown: 'n'.repeat(bytes) });
    expect((await migrate.raw(SINGLE, long(1024 * 1024))).status).toBe(400);
    expect((await migrate.raw(SINGLE, long(1024 * 1024 - 300))).status).toBe(201);
    expect((await migrate.raw(BULK, `{"users":[${long(2 * 1024 * 1024)}]}`)).status).toBe(400);
    expect((await migrate.raw(BULK, `{"users":[${long(2 * 1024 * 1024 - 300)}]}`)).status).toBe(200);
  });
});

describe('an unusual but valid body', () => {
  it.each([
    ['__proto__ and constructor', '"__proto__":{"email":5},"constructor":{"prototype":1}'],
    ['an unknown member twice', '"note":5,"note":"N"'],
    ['null for optional members', '"name":null,"surname":null,"kyc_sent":null,"external_id":null'],
    ['a name beyond the basic plane', '"name":"😀 𝒜"'],
    ['a name with a newline and quotes', '"name":"a\\n\\"b\\"\\\\{}"'],
    ['a name of 1,024 characters', `"name":"${'n'.repeat(1_024)}"`],
  ])('4.6-04 D2-18: is accepted with %s', async (_name, members) => {
    const body = () => `${JSON.stringify(newUser()).slice(0, -1)},${members}}`;
    expect((await migrate.raw(SINGLE, body())).status).toBe(201);
    expect((await migrate.raw(BULK, `{"users":[${body()}]}`)).json).toMatchObject({ success: 1, total: 1 });
  });
});
