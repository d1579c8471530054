import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { BULK, migrationsOf, newUser, SINGLE } from '../support/user-migrations/calls.ts';

let p: Portcullis;
let migrate: Awaited<ReturnType<typeof migrationsOf>>;

beforeAll(async () => {
  p = await startPortcullis();
  migrate = await migrationsOf(p);
});
afterAll(() => p[Symbol.asyncDispose]());

/** A member, as JSON text, that is not valid of one user; where it says so, only of a single one. */
const MEMBERS: [name: string, member: string, json: string, of?: 'single'][] = [
  ['an absent wallet', 'wallet_address', ''],
  ['a null wallet', 'wallet_address', 'null'],
  ['an empty wallet', 'wallet_address', '""'],
  ['a wallet of spaces', 'wallet_address', '" \\t\\n\\u00a0 "'],
  ['a number as wallet', 'wallet_address', '5'],
  ['1e999 as wallet', 'wallet_address', '1e999'],
  ['a boolean as wallet', 'wallet_address', 'true'],
  ['an array as wallet', 'wallet_address', '["w"]'],
  ['an object as wallet', 'wallet_address', '{"w":1}'],
  ['a wallet with U+0000', 'wallet_address', '"w\\u0000"'],
  ['a wallet with a lone surrogate', 'wallet_address', '"w\\ud800"'],
  ['a wallet of 129 characters', 'wallet_address', `"${'w'.repeat(129)}"`, 'single'],
  ['a number as email', 'email', '5'],
  ['a number of 40 digits as email', 'email', '1234567890123456789012345678901234567890'],
  ['a boolean as email', 'email', 'false'],
  ['an array as email', 'email', '[]'],
  ['an object as email', 'email', '{}'],
  ['an email with U+0000', 'email', '"\\u0000"', 'single'],
  ['an email with a lone surrogate', 'email', '"\\udc00@x.y"', 'single'],
  ['an email of 513 characters', 'email', `"${'e'.repeat(513)}"`, 'single'],
  ['a number as external id', 'external_id', '12'],
  ['an array as external id', 'external_id', '["a"]'],
  ['an external id with U+0000', 'external_id', '"a\\u0000b"', 'single'],
  ['an external id of 513 characters', 'external_id', `"${'x'.repeat(513)}"`, 'single'],
  ['a number as name', 'name', '0'],
  ['an object as name', 'name', '{"first":"A"}'],
  ['a name with U+0000', 'name', '"\\u0000"', 'single'],
  ['a name with a lone surrogate', 'name', '"\\ud83d"', 'single'],
  ['a boolean as surname', 'surname', 'true'],
  ['a surname with U+0000', 'surname', '"\\u0000"', 'single'],
  ['a text as kyc_sent', 'kyc_sent', '"true"'],
  ['a number as kyc_sent', 'kyc_sent', '1'],
  ['an array as kyc_sent', 'kyc_sent', '[true]'],
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

describe('a body that is not valid', () => {
  it.each(MEMBERS)('4.6-02 D7-02 D2-22: of one user: %s is a 400 that names it', async (_name, member, json) => {
    await refusedAt(SINGLE, userJson(member, json), member);
  });

  it.each(MEMBERS.filter(([, , , of]) => of === undefined))(
    'D7-05 7.5-01: of many: %s is a 400 that names the row',
    async (_name, member, json) => {
      const good = JSON.stringify(newUser());
      await refusedAt(BULK, `{"users":[${good},${good},${userJson(member, json)}]}`, `users[2].${member}`);
    },
  );

  it.each([
    ['no users', '{}', 'users'],
    ['null users', '{"users":null}', 'users'],
    ['an empty array', '{"users":[]}', 'users'],
    ['an object of users', '{"users":{"0":{}}}', 'users'],
    ['a text of users', '{"users":"[]"}', 'users'],
    ['501 rows', JSON.stringify({ users: Array.from({ length: 501 }, () => newUser()) }), 'users'],
    ['20,000 rows that are nothing', JSON.stringify({ users: Array.from({ length: 20_000 }, () => 0) }), 'users'],
    ['a null row', '{"users":[null]}', 'users[0]'],
    ['a text as a row', '{"users":["a"]}', 'users[0]'],
    ['an array as a row', '{"users":[[]]}', 'users[0]'],
    ['an array as the body', '[]', ''],
    ['null as the body', 'null', ''],
    ['a text as the body', '"users"', ''],
  ])('7.5-01 4.7-02: of many: %s is a 400 that names it', async (_name, body, at) => {
    await refusedAt(BULK, body, at);
  });

  it('D2-14: over its limit a body is a 400: 1 MiB for one user, 2 MiB for many', async () => {
    const long = (bytes: number) => JSON.stringify({ ...newUser(), unknown: 'n'.repeat(bytes) });
    expect((await migrate.raw(SINGLE, long(1024 * 1024))).status).toBe(400);
    expect((await migrate.raw(SINGLE, long(1024 * 1024 - 300))).status).toBe(201);
    expect((await migrate.raw(BULK, `{"users":[${long(2 * 1024 * 1024)}]}`)).status).toBe(400);
    expect((await migrate.raw(BULK, `{"users":[${long(2 * 1024 * 1024 - 300)}]}`)).status).toBe(200);
  });
});

describe('a body that is odd and valid', () => {
  it.each([
    ['__proto__ and constructor', '"__proto__":{"email":5},"constructor":{"prototype":1}'],
    ['a member that nobody knows twice', '"note":5,"note":"N"'],
    ['null where it may be', '"name":null,"surname":null,"kyc_sent":null,"external_id":null'],
    ['an astral name', '"name":"😀 𝒜"'],
    ['a name with a newline and quotes', '"name":"a\\n\\"b\\"\\\\{}"'],
    ['a name of 1,024 characters', `"name":"${'n'.repeat(1_024)}"`],
  ])('4.6-04 D2-18: %s', async (_name, members) => {
    const body = () => `${JSON.stringify(newUser()).slice(0, -1)},${members}}`;
    expect((await migrate.raw(SINGLE, body())).status).toBe(201);
    expect((await migrate.raw(BULK, `{"users":[${body()}]}`)).json).toMatchObject({ success: 1, total: 1 });
  });
});
