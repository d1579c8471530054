import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { emailOf } from '../../src/features/users/users.rules.ts';
import {
  MigrateUserDocument,
  MigrateUsersDocument,
  MigrationDocument,
  UsersDocument,
} from '../graphql/generated/graphql.ts';
import { operate } from '../support/graphql/administration.ts';
import { browserForm } from '../support/graphql/upload-requests.ts';
import { usePortcullis } from '../support/harness.ts';
import { type Agent, connect } from '../support/mcp/agents.ts';
import { rows } from '../support/oauth/clients.ts';
import { migrationsOf } from '../support/user-migrations/calls.ts';

interface Sent {
  email?: string;
  external_id?: string;
  name?: string;
  surname?: string;
}

const p = usePortcullis();
let token: string;
let agent: Agent;
let rest: Awaited<ReturnType<typeof migrationsOf>>;

beforeAll(async () => {
  [token, agent] = await Promise.all([p.clientToken(), connect(p, p.demo.client.client_secret)]);
  rest = await migrationsOf(p, token);
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
});

const wallet = () => `0x${randomUUID()}`;
const field = (text = '') => `"${text.replaceAll('"', '""')}"`;
const camel = ({ external_id: externalId, ...sent }: Sent) => ({ walletAddress: wallet(), externalId, ...sent });

/** The rows of the newest migration: each as it was sent, with its outcome. */
async function lastRows() {
  const [migration] = await rows(p).run((k) =>
    k.selectFrom('migrations').select('id').orderBy('created_at', 'desc').limit(1),
  );
  const id = migration?.id ?? '';
  return rows(p).run((k) => k.selectFrom('migration_rows').selectAll().where('migration_id', '=', id).orderBy('index'));
}

/** Migrates users on each interface, one after another. Returns for each `created`, or why not. */
const INTERFACES: Record<string, (users: Sent[]) => Promise<string[]>> = {
  REST: (users) =>
    inTurn(users, async (sent) => {
      const { status, json } = await rest.one({ wallet_address: wallet(), ...sent });
      return status === 201 ? 'created' : json.message;
    }),
  'REST in bulk': async (users) => {
    const { results } = (await rest.many(users.map((sent) => ({ wallet_address: wallet(), ...sent })))).json;
    return results.map(({ reason, status }: { reason?: string; status: string }) => reason ?? status);
  },
  GraphQL: (users) =>
    inTurn(users, async (sent) => {
      const { result } = await operate(p, token, MigrateUserDocument, { input: camel(sent) });
      if (result.__typename === 'User') return 'created';
      return result.__typename === 'DuplicateError' ? result.reason : 'missing_email_and_external_id';
    }),
  'GraphQL in bulk': async (users) => {
    await operate(p, token, MigrateUsersDocument, { users: users.map(camel) });
    return (await lastRows()).map(({ reason, status }) => reason ?? status);
  },
  MCP: (users) =>
    inTurn(users, async (sent) => {
      const { given } = await agent.call('migrate_users', { users: [{ wallet_address: wallet(), ...sent }] });
      const [row] = given.rows.data;
      return row.reason ?? row.status;
    }),
  'a file': async (users) => {
    const lines = users.map(({ email, external_id, name, surname }) =>
      [wallet(), ...[email, external_id, name, surname].map(field)].join(','),
    );
    const body = browserForm(`wallet_address,email,external_id,name,surname\n${lines.join('\n')}\n`);
    const headers = { authorization: `Bearer ${token}` };
    const { data } = await (await fetch(`${p.url}/graphql`, { method: 'POST', headers, body })).json();
    return vi.waitFor(async () => {
      const { migration } = await operate(p, token, MigrationDocument, { id: data.result.id, first: 100 });
      expect(migration?.status).toBe('DONE');
      return migration?.rows.edges.map(({ node: { reason, status } }) => reason ?? status) ?? [];
    });
  },
};

async function inTurn(users: readonly Sent[], migrateOne: (user: Sent) => Promise<string>): Promise<string[]> {
  const outcomes: string[] = [];
  for (const user of users) outcomes.push(await migrateOne(user));
  return outcomes;
}

const EACH = Object.keys(INTERFACES);
const migrate = (on: string, users: Sent[]) => INTERFACES[on]?.(users);
const BULK = 'REST in bulk';

async function storedUser(external_id: string) {
  const [user] = await rows(p).run((k) =>
    k.selectFrom('users').select(['email', 'name', 'surname']).where('external_id', '=', external_id),
  );
  return user;
}

/** Two spellings of an email, each made unique by a number; the second is sent first. */
const SPELLINGS: [name: string, other: (n: string) => string, sent: (n: string) => string][] = [
  ['a trailing space', (n) => `ada-${n}@example.com`, (n) => `ada-${n}@example.com `],
  ['blanks around', (n) => `ada-${n}@example.com`, (n) => ` \t\r\nada-${n}@example.com\f\v`],
  ['a no-break space', (n) => `ada-${n}@example.com`, (n) => `\u00a0ada-${n}@example.com\u202f`],
  ['an ideographic space', (n) => `ada-${n}@example.com`, (n) => `\u3000ada-${n}@example.com\u3000`],
  ['a next line character', (n) => `ada-${n}@example.com`, (n) => `ada-${n}@example.com\u0085`],
  ['line and paragraph separators', (n) => `ada-${n}@example.com`, (n) => `\u2028ada-${n}@example.com\u2029`],
  ['a byte order mark', (n) => `ada-${n}@example.com`, (n) => `\ufeffada-${n}@example.com`],
  ['a byte order mark between spaces', (n) => `ada-${n}@example.com`, (n) => ` \ufeff ada-${n}@example.com`],
  ['decomposed', (n) => `jürgen-${n}@example.com`, (n) => `ju\u0308rgen-${n}@example.com`],
  ['decomposed, in capitals', (n) => `jürgen-${n}@example.com`, (n) => `JU\u0308RGEN-${n}@EXAMPLE.COM`],
  ['the sign Ångström', (n) => `\u00e5-${n}@example.com`, (n) => `\u212b-${n}@example.com`],
  ['Hangul in letters', (n) => `한-${n}@example.com`, (n) => `\u1112\u1161\u11ab-${n}@example.com`],
  ['Vietnamese in another order', (n) => `ệ-${n}@example.com`, (n) => `e\u0302\u0323-${n}@example.com`],
  ['a final sigma', (n) => `νίκος-${n}@x.gr`, (n) => `ΝΊΚΟΣ-${n}@X.GR`],
  ['a zero-width space', (n) => `ada-${n}@example.com`, (n) => `a\u200bda-${n}@example.com`],
  ['a left-to-right mark', (n) => `ada-${n}@example.com`, (n) => `\u200eada-${n}@example.com`],
  ['an embedding', (n) => `ada-${n}@example.com`, (n) => `\u202aada-${n}@example.com\u202c`],
  ['isolates', (n) => `ada-${n}@example.com`, (n) => `\u2066ada-${n}@example.com\u2069`],
  ['an Arabic letter mark', (n) => `ada-${n}@example.com`, (n) => `ada\u061c-${n}@example.com`],
  ['a soft hyphen', (n) => `ada-${n}@example.com`, (n) => `ada-${n}@exam\u00adple.com`],
  ['a word joiner', (n) => `ada-${n}@example.com`, (n) => `ada\u2060-${n}@example.com`],
  ['a byte order mark inside', (n) => `ada-${n}@example.com`, (n) => `ada\ufeff-${n}@example.com`],
  ['a zero-width space before a blank', (n) => `ada-${n}@example.com`, (n) => `\u200b ada-${n}@example.com \u200b`],
  ['a zero-width non-joiner', (n) => `می\u200cخواهم-${n}@x.ir`, (n) => `میخواهم-${n}@x.ir`],
  ['a zero-width joiner', (n) => `क्\u200dष-${n}@x.in`, (n) => `क्ष-${n}@x.in`],
  ['the sign of Kelvin', (n) => `k-${n}@x.y`, (n) => `\u212a-${n}@x.y`],
  ['a long s', (n) => `s-${n}@x.y`, (n) => `ſ-${n}@x.y`],
  ['a capital sharp s', (n) => `ß-${n}@x.y`, (n) => `ẞ-${n}@x.y`],
  ['a titlecase digraph', (n) => `ǆ-${n}@x.y`, (n) => `ǅ-${n}@x.y`],
  ['Georgian', (n) => `ა-${n}@x.ge`, (n) => `Ა-${n}@x.ge`],
  ['Cherokee', (n) => `Ꭰ-${n}@x.y`, (n) => `ꭰ-${n}@x.y`],
  ['Deseret', (n) => `𐐨-${n}@x.y`, (n) => `𐐀-${n}@x.y`],
  ['Devanagari, which NFC decomposes', (n) => `\u0915\u093c-${n}@example.com`, (n) => `\u0958-${n}@example.com`],
];

it.each(EACH)(
  'D7-11 D7-02: on %s, emails are compared and stored trimmed and composed, and external ids exactly',
  async (on) => {
    const n = randomUUID();
    const longest = `${'ö'.repeat(512 - n.length)}${n}`;
    const users: [Sent, string][] = [
      [
        { email: `\u00a0JU\u0308rgen-${n}@x.y `, external_id: `1-${n}`, name: ' Ju\u0308rgen ', surname: 'A\u030a' },
        'created',
      ],
      [{ email: `jürgen-${n}@x.y` }, 'duplicate_email'],
      [{ email: `  ${longest.normalize('NFD')}  `, external_id: `2-${n}` }, 'created'],
      [{ email: '\u3000', external_id: '\ufeff' }, 'missing_email_and_external_id'],
      [{ email: ' ', external_id: ` ö-${n}` }, 'created'],
      [{ email: ' ', external_id: ` ö-${n}` }, 'duplicate_external_id'],
      [{ email: ' ', external_id: ` o\u0308-${n}` }, 'created'],
    ];
    const outcomes = await migrate(
      on,
      users.map(([sent]) => sent),
    );
    expect(outcomes).toEqual(users.map(([, outcome]) => outcome));
    expect(await storedUser(`1-${n}`)).toEqual({ email: `JÜrgen-${n}@x.y`, name: ' Jürgen ', surname: '\u00c5' });
    expect(await storedUser(`2-${n}`)).toMatchObject({ email: longest });
    expect(await storedUser(` ö-${n}`)).toMatchObject({ email: '' });
  },
);

describe('D7-11: spellings of one email', () => {
  it('spellings of an email are stored trimmed and composed, and later ones are duplicates', async () => {
    const n = randomUUID();
    const sent = SPELLINGS.map(([, , sentAs], at) => ({ email: sentAs(`${at}-${n}`), external_id: `${at}-${n}` }));
    expect(await migrate(BULK, sent)).toEqual(SPELLINGS.map(() => 'created'));
    for (const { email, external_id } of sent) {
      expect((await storedUser(external_id))?.email).toBe(emailOf(email));
    }
    for (const spelling of [1, 2] as const) {
      const again = SPELLINGS.map((one, at) => ({ email: one[spelling](`${at}-${n}`) }));
      expect(await migrate(BULK, again)).toEqual(SPELLINGS.map(() => 'duplicate_email'));
    }
    for (const [at, [, spelt, sentAs]] of SPELLINGS.entries()) {
      for (const search of [spelt(`${at}-${n}`), sentAs(`${at}-${n}`)]) {
        const { users } = await operate(p, token, UsersDocument, { filter: { search } });
        expect(users.edges.map(({ node }) => node.email)).toEqual([emailOf(sentAs(`${at}-${n}`))]);
      }
    }
  });

  it('spellings of an email are duplicates within one bulk request, and in one file', async () => {
    const n = randomUUID();
    const emails = [`ö-${n}@x.y`, `o\u0308-${n}@x.y`, ` Ö-${n}@x.y\u00a0`, `O\u0308-${n}@x.y`];
    const { results } = (await rest.many(emails.map((email) => ({ wallet_address: wallet(), email })))).json;
    expect(results.map(({ reason }: { reason?: string }) => reason)).toEqual([
      undefined,
      ...Array(3).fill('duplicate_email'),
    ]);
    expect(results.map(({ email }: { email: string }) => email)).toEqual(emails);
    expect((await lastRows()).map(({ email }) => email)).toEqual(emails);
  });

  it.each([
    ['compatibility letters', 'ﬁ', 'fi'],
    ['a full-width letter', 'ａ', 'a'],
    ['a dotless i', 'ı', 'i'],
    ['sharp s', 'ß', 'ss'],
    ['a space inside', 'a b', 'ab'],
    ['a Cyrillic letter', 'а', 'a'],
  ])('%s make a different email', async (_name, one, other) => {
    const n = randomUUID();
    expect(await migrate(BULK, [{ email: `${one}-${n}@x.y` }, { email: `${other}-${n}@x.y` }])).toEqual([
      'created',
      'created',
    ]);
  });
});

describe('D7-11 D7-02: blank identifiers', () => {
  it('blank identifiers count as absent, and external ids are compared exactly', async () => {
    const blanks = [' ', '\t', '\u00a0', '\u3000\u2003', '\ufeff', '\u0085', '\u2028'];
    const missing = blanks.map((blank) => ({ email: blank, external_id: blank }));
    expect(await migrate(BULK, missing)).toEqual(blanks.map(() => 'missing_email_and_external_id'));
    const n = randomUUID();
    const spellings = [`ö-${n}`, `o\u0308-${n}`, `Ö-${n}`, ` ö-${n}`, `ö-${n}\u00a0`];
    const exact = spellings.map((external_id) => ({ email: ' ', external_id }));
    expect(await migrate(BULK, exact)).toEqual(spellings.map(() => 'created'));
    expect(await migrate(BULK, exact)).toEqual(spellings.map(() => 'duplicate_external_id'));
  });

  it('blank identifiers are omitted from results', async () => {
    const { text } = await rest.many([{ wallet_address: '0x1', email: ' ', external_id: '\u00a0' }]);
    expect(JSON.parse(text).results).toEqual([{ status: 'skipped', reason: 'missing_email_and_external_id' }]);
    expect(await lastRows()).toMatchObject([{ email: null, external_id: null }]);
  });
});

it('D7-11: an email with a megabyte of blanks is rejected as too long', async () => {
  const email = `${' '.repeat(500_000)}x${' '.repeat(500_000)}y`;
  const { json } = await rest.many([{ wallet_address: wallet(), email }]);
  expect(json.results[0]).toMatchObject({ status: 'failed', reason: 'email has more than 512 characters' });
});

describe('D7-11: a search finds a stored user in any spelling', () => {
  const n = randomUUID();
  beforeAll(async () => {
    await rest.one({
      wallet_address: wallet(),
      email: `zoë-${n}@x.y`,
      name: `Zoë ${n}`,
      external_id: `zoe\u0308-${n}`,
    });
  });

  it.each([
    ['a composed email', `zoë-${n}@x.y`],
    ['a decomposed email', `ZOE\u0308-${n}@x.y`],
    ['an email with surrounding blanks', `\u00a0zoë-${n}@x.y \ufeff`],
    ['a decomposed part of a name', `Zoe\u0308 ${n}`],
    ['an unchanged external id', `oe\u0308-${n}`],
  ])('a search by %s finds the user', async (_name, search) => {
    const { users } = await operate(p, token, UsersDocument, { filter: { search } });
    expect(users.edges.map(({ node }) => node.email)).toEqual([`zoë-${n}@x.y`]);
    const { given } = await agent.call('list_users', { search });
    expect(given.data).toMatchObject([{ email: `zoë-${n}@x.y` }]);
  });

  it('a search for blanks is not trimmed', async () => {
    expect((await operate(p, token, UsersDocument, { filter: { search: '   ' } })).users.edges).toEqual([]);
    expect((await operate(p, token, UsersDocument, { filter: { search: '' } })).users.edges.length).toBeGreaterThan(1);
  });

  it('a blank at the end of a searched name is significant', async () => {
    const { users } = await operate(p, token, UsersDocument, { filter: { search: `Zoë ${n} ` } });
    expect(users.edges).toEqual([]);
  });
});

it('D7-11 D7-02: blanks around a wallet address are removed', async () => {
  const address = wallet();
  expect((await rest.one({ wallet_address: `\u0085${address}\ufeff`, email: `${address}@x.y` })).json.address).toBe(
    address,
  );
  expect((await rest.one({ wallet_address: '\u0085', email: 'a@x.y' })).status).toBe(400);
});
