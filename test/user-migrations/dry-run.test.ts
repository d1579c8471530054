import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { print } from 'graphql';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { MigrateUserInput } from '../../src/features/user-migrations/migration.input.ts';
import { UserMigrations } from '../../src/features/user-migrations/user-migrations.service.ts';
import { silentLog } from '../../src/lib/log.ts';
import {
  EraseUserDocument,
  MigrateUsersDocument,
  MigrationDocument,
  MigrationsDocument,
  StartUserMigrationDocument,
} from '../graphql/generated/graphql.ts';
import { operate } from '../support/graphql/administration.ts';
import { MAP } from '../support/graphql/upload-requests.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { usePortcullis } from '../support/harness.ts';
import { connect } from '../support/mcp/agents.ts';
import { rows } from '../support/oauth/clients.ts';
import { csvOf, fileOf, filesOn, newNode, oneBatch, stateOf, work } from '../support/user-migrations/files-fixture.ts';

const database = beforeTests(scratchDatabase);

const DECIDED = ['index', 'email', 'external_id', 'status', 'reason'] as const;
type State = Awaited<ReturnType<typeof stateOf>>;

/** What was decided in the last migration of a node: its counters and the outcomes of its rows. */
function decided({ migrations, rows: all }: State) {
  const last = migrations.at(-1);
  const { total, success, skipped, failed, status } = last ?? {};
  const outcomes = all
    .filter(({ migration_id: id }) => id === last?.id)
    .map((row) => DECIDED.map((member) => row[member]));
  return { status, total, success, skipped, failed, outcomes };
}

const emails = [
  ...['', ' ', 'ann@x.y', 'ANN@x.y', ' ann@x.y\u00a0', 'zoe\u0308@x.y', 'zo\u00eb@x.y', 'ZO\u00cb@x.y'],
  ...['İ@x.y', 'i̇@x.y', 'stored@x.y', 'erased@x.y', `${'e'.repeat(520)}@x.y`, 'nul\0@x.y', 'bob@x.y'],
];
const given = (values: readonly string[]) =>
  fc.oneof(
    fc.constantFrom(undefined, ...values),
    fc.nat(600).map((number) => `${number}@x.y`),
  );
const row = fc.record<MigrateUserInput>({
  wallet_address: fc.oneof(
    fc.constantFrom('0xA', '0xa', ' 0xa ', '0xstored', '0xerased', 'w'.repeat(129)),
    fc.nat(2_000).map((number) => `0x${number}`),
  ),
  email: given(emails),
  external_id: given(['', 'a', 'A', ' a', 'stored', 'erased', 'x'.repeat(513)]),
  name: fc.constantFrom(undefined, 'Ann', 'refused', 'n'.repeat(1_025)),
  surname: fc.constant(undefined),
  kyc_sent: fc.boolean(),
});
/** A line of a file: a row as a spreadsheet may write it, or anything. */
const line = fc.oneof(
  { weight: 20, arbitrary: row.map((user) => COLUMNS.map((name) => quoted(`${user[name] ?? ''}`)).join(',')) },
  { weight: 1, arbitrary: fc.constantFrom('', ',,,,', '0x1,"open', '0x2,a"b', '0x3,a,b,c,d,e,f', '0x4') },
);
const COLUMNS = ['wallet_address', 'email', 'external_id', 'name', 'kyc_sent'] as const;
const quoted = (text: string) => (/^\w*$/.test(text) ? text : `"${text.replaceAll('"', '""')}"`);
const many = { maxLength: 500, size: 'max' as const };
const asked = fc.oneof(
  fc.array(row, { minLength: 1, ...many }).map((users) => ({ users, file: undefined })),
  fc.array(line, many).map((lines) => ({ users: [], file: `${COLUMNS}\n${lines.join('\r\n')}` })),
);

describe('a dry run', () => {
  beforeAll(async () => {
    await database.db
      .unscoped('test')
      .raw((sql) => sql`alter table users add constraint none_refused check (name <> 'refused')`);
  });

  it('D7-15: a dry run predicts the outcomes of the following run, and changes neither users nor events', async () => {
    const shared = { db: database.db, log: silentLog, nowMs: Date.now, notify: () => undefined };
    const { files, jobs } = filesOn(database.db);
    const migrations = new UserMigrations(shared);
    await fc.assert(
      fc.asyncProperty(asked, async ({ users, file }) => {
        const caller = await newNode(database.db);
        const state = () => stateOf(database.db, caller.nodeId);
        const stored = { wallet_address: '0xstored', email: 'stored@x.y', external_id: 'stored', kyc_sent: false };
        await migrations.migrateMany(caller, [stored]);
        const run = async (isDryRun: boolean) => {
          if (file === undefined) await migrations.migrateMany(caller, users, isDryRun);
          else {
            await files.start(caller, fileOf(file, 65_536), { isDryRun });
            expect(await work(jobs)).toBe('finished');
          }
          return state();
        };
        const before = await state();
        const dry = await run(true);
        expect(dry).toMatchObject({ users: before.users, events: before.events, jobs: [], chunks: [] });
        expect(dry.migrations.map(({ dry_run }) => dry_run)).toEqual([false, true]);
        expect(dry.rows.filter(({ user_id }) => user_id !== null)).toHaveLength(1);
        expect(decided(await run(false))).toEqual(decided(dry));
      }),
      { numRuns: inject('isThorough') ? 60 : 5 },
    );
  });

  it('D7-15: a dry run compares up to 500 long rows with each other, and more than 500 batch by batch', async () => {
    const long = (count: number) => csvOf(count, { [count]: `0xlast,user-1@x.y,${'n'.repeat(9)},` });
    const wide = long(500).replaceAll('Name', '😀'.repeat(1_000));
    for (const [content, last] of [
      [wide, 'duplicate_email'],
      [long(501), null],
    ] as const) {
      const caller = await newNode(database.db);
      const { files, jobs } = filesOn(database.db);
      await files.start(caller, fileOf(content, 65_536), { isDryRun: true });
      expect(await work(jobs)).toBe('finished');
      const { rows: outcomes, users } = await stateOf(database.db, caller.nodeId);
      expect([outcomes.at(-1)?.reason, users]).toEqual([last, []]);
    }
  });

  it('D7-15 D7-09: an interrupted dry run is finished by another process, and a running one can be cancelled', async () => {
    const caller = await newNode(database.db);
    const { files, jobs } = filesOn(database.db);
    await files.start(caller, fileOf(csvOf(1_200)), { isDryRun: true });
    expect(await oneBatch(database.db)).toBe('more');
    const { jobs: stored, rows: first } = await stateOf(database.db, caller.nodeId);
    // A worker of release 0.1.0 that takes the job finds no columns, and creates no user.
    expect([stored[0]?.columns, first.length]).toEqual(['', 500]);
    expect(await work(jobs)).toBe('finished');
    const { id } = await files.start(caller, fileOf(csvOf(1_200)), { isDryRun: true });
    await oneBatch(database.db);
    expect(await files.cancel(caller.nodeId, id)).toMatchObject({ status: 'cancelled', dry_run: true, success: 500 });
    expect(await stateOf(database.db, caller.nodeId)).toMatchObject({
      migrations: [{ status: 'done', dry_run: true, success: 1_200 }, {}],
      ...{ users: [], events: [], jobs: [], chunks: [] },
    });
  });
});

describe('a dry run over the interfaces', () => {
  const p = usePortcullis();
  let token: string;
  beforeAll(async () => {
    token = await p.clientToken();
  });
  const newUsers = () => {
    const id = randomUUID();
    return [
      { walletAddress: `0x${id}`, email: ` ${id}@X.y ` },
      { walletAddress: '0xother', email: `${id}@x.y` },
    ];
  };
  const usersOf = (email = '') =>
    rows(p).run((k) => k.selectFrom('users').select('id').where('email', '=', email.trim()));

  it('D7-15: GraphQL stores the migration and its rows with dryRun, from a request and from a file', async () => {
    const users = newUsers();
    const { result } = await operate(p, token, MigrateUsersDocument, { users, dryRun: true });
    const [created, skipped] = [
      { email: users[0]?.email, userId: null, status: 'created', reason: null },
      { email: users[1]?.email, userId: null, status: 'skipped', reason: 'duplicate_email' },
    ].map((node) => ({ node }));
    const counts = { dryRun: true, total: 2, success: 1, skipped: 1, failed: 0 };
    expect(result).toMatchObject({ ...counts, status: 'DONE', rows: { edges: [created, skipped] } });
    const form = new FormData();
    const variables = { file: null, dryRun: true };
    form.set('operations', JSON.stringify({ query: print(StartUserMigrationDocument), variables }));
    form.set('map', MAP);
    const lines = users.map(({ walletAddress, email }) => `${walletAddress},${email}\n`).join('');
    form.set('0', new Blob([`wallet_address,email\n${lines}`]), 'users.csv');
    const answer = await fetch(`${p.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: form,
    });
    const { id, dryRun } = (await answer.json()).data.result;
    expect(dryRun).toBe(true);
    const ended = async () => (await operate(p, token, MigrationDocument, { id })).migration;
    await expect.poll(ended).toMatchObject({ ...counts, status: 'DONE', rows: { edges: [created, skipped] } });
    expect((await ended())?.rejectedRows.edges).toEqual([{ node: { index: 2 } }]);
    expect(await usersOf(users[0]?.email)).toEqual([]);
  });

  it('D7-15 D7-14: an idempotency key is rejected with what to change, and can be used for the run', async () => {
    const users = newUsers();
    const headers = { 'idempotency-key': randomUUID() };
    const call = async (dryRun: boolean) => {
      const query = print(MigrateUsersDocument);
      const { json } = await p.call('POST', '/graphql', {
        token,
        headers,
        json: { query, variables: { users, dryRun } },
      });
      return json.data.result;
    };
    expect(await call(true)).toMatchObject({
      __typename: 'ValidationError',
      issues: [{ path: ['dryRun'], message: 'a dry run takes no Idempotency-Key: omit the header' }],
    });
    expect(await call(false)).toMatchObject({ __typename: 'Migration', dryRun: false, success: 1 });
  });

  it('D7-15: the tool migrate_users reports dry_run, creates no user and rejects a key', async () => {
    await using agent = await connect(p, p.demo.client.client_secret);
    const users = newUsers().map(({ walletAddress, email }) => ({ wallet_address: walletAddress, email }));
    const { given: dry } = await agent.call('migrate_users', { users, dry_run: true });
    expect(dry).toMatchObject({ dry_run: true, success: 1, skipped: 1 });
    expect(await usersOf(users[0]?.email)).toEqual([]);
    const keyed = await agent.call('migrate_users', { users, dry_run: true, idempotency_key: 'k' });
    expect(keyed.error).toMatchObject({
      issues: [{ path: 'idempotency_key', message: 'must be omitted in a dry run' }],
    });
    const { given: run } = await agent.call('migrate_users', { users });
    expect([run.dry_run, run.success]).toEqual([undefined, 1]);
  });

  it('D7-15 D7-10: erasing a user blanks the rows of dry runs with the email or the external id', async () => {
    const id = randomUUID();
    const users = [
      { walletAddress: `0x${id}`, email: ` ZOE\u0308-${id}@x.y\ufeff` },
      { walletAddress: `0x${id}`, externalId: id },
      { walletAddress: `0x${id}`, email: `zo\u00eb-${id}@x.yz` },
    ];
    await operate(p, token, MigrateUsersDocument, { users, dryRun: true });
    const { result } = await operate(p, token, MigrateUsersDocument, {
      users: [{ walletAddress: `0x${id}`, email: `zo\u00eb-${id}@x.y`, externalId: id }],
    });
    const [created] = result.__typename === 'Migration' ? result.rows.edges : [];
    await operate(p, token, EraseUserDocument, { id: created?.node.userId ?? '' });
    const { migrations } = await operate(p, token, MigrationsDocument, { first: 2 });
    const dry = migrations.edges.find(({ node }) => node.dryRun)?.node.id ?? '';
    const { migration } = await operate(p, token, MigrationDocument, { id: dry });
    expect(migration?.rows.edges.map(({ node }) => [node.email, node.externalId])).toEqual([
      [null, null],
      [null, null],
      [users[2]?.email, null],
    ]);
  });
});
