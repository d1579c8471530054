import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { BULK, eventsOf, migrationsOf, newUser, SINGLE } from '../support/user-migrations/calls.ts';

const p = usePortcullis();
let migrate: Awaited<ReturnType<typeof migrationsOf>>;

beforeAll(async () => {
  migrate = await migrationsOf(p);
});

describe('a bulk migration', () => {
  it('2.9-01 2.9-02 4.7-01 4.7-03 7.5-02 D7-04: returns every row in order, with its identifiers and outcome', async () => {
    const id = randomUUID();
    const existing = newUser({ external_id: randomUUID() });
    await migrate.one(existing);
    const answer = await migrate.many([
      { wallet_address: `0xA${id}`, email: `a-${id}@x.y`, external_id: `a-${id}` },
      { wallet_address: `0xb${id}` },
      { wallet_address: `0xb${id}`, email: existing.email.toUpperCase() },
      { wallet_address: `0xb${id}`, email: `b-${id}@x.y`, external_id: existing.external_id },
      { wallet_address: existing.wallet_address, email: `b-${id}@x.y` },
      { wallet_address: `0xb${id}`, email: `A-${id}@x.Y` },
      { wallet_address: `0xb${id}`, external_id: `a-${id}`, email: null },
      { wallet_address: ` 0xa${id} `, email: '', external_id: `b-${id}`, kyc_sent: true },
      { wallet_address: `0xb${id}`, external_id: `b-${id}`, name: 'nul\0', email: '' },
      { wallet_address: `0xb${id}`, external_id: `b-${id}`, kyc_sent: true },
    ]);
    expect(answer.status).toBe(200);
    const [first, , , , , , , , , last] = answer.json.results;
    expect(answer.text).toBe(
      JSON.stringify({
        total: 10,
        success: 2,
        skipped: 7,
        failed: 1,
        results: [
          { email: `a-${id}@x.y`, external_id: `a-${id}`, user_id: first.user_id, status: 'created' },
          { status: 'skipped', reason: 'missing_email_and_external_id' },
          { email: existing.email.toUpperCase(), status: 'skipped', reason: 'duplicate_email' },
          {
            email: `b-${id}@x.y`,
            external_id: existing.external_id,
            status: 'skipped',
            reason: 'duplicate_external_id',
          },
          { email: `b-${id}@x.y`, status: 'skipped', reason: 'duplicate_wallet' },
          { email: `A-${id}@x.Y`, status: 'skipped', reason: 'duplicate_email' },
          { external_id: `a-${id}`, status: 'skipped', reason: 'duplicate_external_id' },
          { external_id: `b-${id}`, status: 'skipped', reason: 'duplicate_wallet' },
          { external_id: `b-${id}`, status: 'failed', reason: 'name contains U+0000 or a lone surrogate' },
          { external_id: `b-${id}`, user_id: last.user_id, status: 'created' },
        ],
      }),
    );
    expect((await eventsOf(p, first.user_id)).map(({ event }) => event)).toEqual(['user.kyc_token.requested']);
    expect(await eventsOf(p, last.user_id)).toEqual([]);
  });

  it('D7-02 D2-22: a row that cannot be stored fails, and the other rows are created', async () => {
    const faults = [
      { wallet_address: 'w'.repeat(129) },
      { email: 'a\0@x.y' },
      { external_id: 'lone \ud800' },
      { surname: '\udfff' },
      { email: `${'e'.repeat(520)}@x.y` },
      { external_id: 'x'.repeat(513) },
    ];
    const answer = await migrate.many([newUser(), ...faults.map((fault) => newUser(fault)), newUser()]);
    expect(answer.json).toMatchObject({ total: 8, success: 2, skipped: 0, failed: 6 });
    expect(answer.json.results.map(({ status }: { status: string }) => status)).toEqual([
      'created',
      ...faults.map(() => 'failed'),
      'created',
    ]);
    expect(answer.json.results[2].email).toBe('a\0@x.y');
    expect(answer.json.results[1].reason).toBe('wallet_address has more than 128 characters');
  });

  it('D7-03: non-ASCII letters are compared as the unique index compares them', async () => {
    const id = randomUUID();
    const spellings = 'ÄÖÜ äöü ΣΑΣ σας σασ İ i̇ ẞ ß ss K k ﬀ ff Σ σ ς I ı Å å Ω ω Ǆ ǅ ǆ'.split(' ');
    const users = spellings.map((name, index) =>
      newUser({ email: `${name}-${id}@x.y`, wallet_address: `${index}-${id}` }),
    );
    const { json } = await migrate.many(users);
    expect(json.failed).toBe(0);
    const kept = await rows(p).run((k) =>
      k
        .selectFrom('users')
        .select((eb) => eb.fn.count<string>('id').as('users'))
        .select((eb) =>
          eb.fn
            .count<string>(eb.fn('lower', ['email']))
            .distinct()
            .as('emails'),
        )
        .where('email', 'like', `%${id}%`),
    );
    expect(kept[0]?.users).toEqual(kept[0]?.emails);
    expect(Number(kept[0]?.users)).toBe(json.success);
    const again = await migrate.many(users.map((user) => ({ ...user, wallet_address: `${user.wallet_address}-2` })));
    expect(again.json).toMatchObject({ success: 0, skipped: spellings.length, failed: 0 });
  });

  it('4.7-02 D7-02: 500 rows are accepted; each creates one user, in the order of the rows', async () => {
    const users = Array.from({ length: 500 }, (_, index) => newUser({ name: `n${index}`, kyc_sent: index % 2 === 0 }));
    const answer = await migrate.many(users);
    expect(answer).toMatchObject({ status: 200, json: { total: 500, success: 500, skipped: 0, failed: 0 } });
    const listed = await rows(p).run((k) =>
      k
        .selectFrom('users')
        .select('name')
        .where(
          'email',
          'in',
          users.map(({ email }) => email),
        )
        .orderBy('created_at'),
    );
    expect(listed.map(({ name }) => name)).toEqual(users.map((_, index) => `n${index}`));
    const again = await migrate.many(users);
    expect(again.json).toMatchObject({ total: 500, success: 0, skipped: 500, failed: 0 });
  });
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
