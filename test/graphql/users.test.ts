import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MISSING, operate } from '../support/graphql/administration.ts';
import { renameTable } from '../support/harness/database-roles.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { eventsOf, migrationsOf } from '../support/user-migrations/calls.ts';
import {
  EraseUserDocument,
  MigrateUserDocument,
  MigrateUsersDocument,
  MigrationDocument,
  MigrationsDocument,
  UserDocument,
  UsersDocument,
} from './generated/graphql.ts';

let p: Portcullis;
let token: string;
let otherToken: string;

beforeAll(async () => {
  p = await startPortcullis();
  token = await p.clientToken();
  otherToken = await p.clientToken(p.demo.other_node.client);
});
afterAll(() => p[Symbol.asyncDispose]());

function newUser() {
  const id = randomUUID();
  return { walletAddress: `0x${id}`, email: `${id}@example.com` };
}

async function migrated(input: object = {}, by = token) {
  const { result } = await operate(p, by, MigrateUserDocument, { input: { ...newUser(), ...input } });
  if (result.__typename !== 'User') throw new Error(JSON.stringify(result));
  return result;
}

describe('migrateUser', () => {
  it('DG-07 4.6-01 D7-08: gives the user, as REST does, with its event', async () => {
    const id = randomUUID();
    const user = await migrated({
      walletAddress: ` 0X${id} `,
      externalId: id,
      name: 'Ann',
      surname: 'Lee',
      kycSent: true,
    });
    expect(user).toMatchObject({ address: `0x${id}`, externalId: id, name: 'Ann', surname: 'Lee', identityNumber: '' });
    expect(user.kyc).toEqual({
      isVerified: true,
      tokenSent: true,
      tokenSentAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      tokenTxHash: null,
    });
    expect(await eventsOf(p, user.id)).toEqual([]);
    const plain = await migrated();
    expect(plain.kyc).toBeNull();
    expect(await eventsOf(p, plain.id)).toHaveLength(1);
  });

  it('DG-03 7.4-02 7.4-03 7.4-04: a duplicate is a DuplicateError with the reason', async () => {
    const first = { ...newUser(), externalId: randomUUID() };
    await migrated(first);
    for (const [input, reason] of [
      [first, 'duplicate_email'],
      [{ ...first, email: null }, 'duplicate_external_id'],
      [{ ...newUser(), walletAddress: first.walletAddress.toUpperCase() }, 'duplicate_wallet'],
    ] as const) {
      const { result } = await operate(p, token, MigrateUserDocument, { input });
      expect(result).toMatchObject({ __typename: 'DuplicateError', reason });
    }
  });

  it.each([
    ['no identifier', { email: '' }, [['email'], ['externalId']]],
    ['a blank wallet', { walletAddress: ' ' }, [['walletAddress']]],
    ['a long wallet', { walletAddress: 'w'.repeat(129) }, [['walletAddress']]],
    ['U+0000 in a name', { name: '\0' }, [['name']]],
    ['a long external id', { externalId: 'x'.repeat(513) }, [['externalId']]],
  ])('DG-03 D7-02: %s is a ValidationError that names it', async (_name, more, paths) => {
    const { result } = await operate(p, token, MigrateUserDocument, { input: { ...newUser(), ...more } });
    expect(result).toMatchObject({ __typename: 'ValidationError', issues: paths.map((path) => ({ path })) });
  });
});

describe('migrateUsers', () => {
  it('DG-09 4.7-03 D7-04: gives the migration, and what became of each row', async () => {
    const [first, second] = [newUser(), newUser()];
    const users = [
      first,
      { walletAddress: 'w' },
      { ...second, email: first.email.toUpperCase() },
      { ...second, name: '\0' },
    ];
    const { result } = await operate(p, token, MigrateUsersDocument, { users });
    if (result.__typename !== 'Migration') throw new Error(JSON.stringify(result));
    const { rows: listed, ...migration } = result;
    expect(migration).toMatchObject({ status: 'DONE', total: 4, success: 1, skipped: 2, failed: 1 });
    expect(migration.createdBy).toBe(p.demo.client.client_id);
    expect(migration.finishedAt).toBe(migration.createdAt);
    expect(listed.edges.map(({ node }) => node)).toEqual([
      { index: 1, email: first.email, externalId: null, userId: expect.any(String), status: 'created', reason: null },
      {
        index: 2,
        email: null,
        externalId: null,
        userId: null,
        status: 'skipped',
        reason: 'missing_email_and_external_id',
      },
      {
        index: 3,
        email: first.email.toUpperCase(),
        externalId: null,
        userId: null,
        status: 'skipped',
        reason: 'duplicate_email',
      },
      {
        index: 4,
        email: second.email,
        externalId: null,
        userId: null,
        status: 'failed',
        reason: 'name contains U+0000 or a lone surrogate',
      },
    ]);
  });

  it('DG-09: takes 1 to 500 rows, and names what is not valid of them', async () => {
    const many = (count: number) => Array.from({ length: count }, newUser);
    expect((await operate(p, token, MigrateUsersDocument, { users: many(500) })).result).toMatchObject({
      success: 500,
    });
    for (const users of [[], many(501)]) {
      const { result } = await operate(p, token, MigrateUsersDocument, { users });
      expect(result).toMatchObject({ __typename: 'ValidationError', issues: [{ path: ['users'] }] });
    }
    const { result } = await operate(p, token, MigrateUsersDocument, { users: [newUser(), { walletAddress: '' }] });
    expect(result).toMatchObject({
      __typename: 'ValidationError',
      issues: [{ path: ['users', '1', 'walletAddress'] }],
    });
  });
});

describe('the lists', () => {
  it('DG-02 DG-13: users come oldest first, by any page size, forwards and backwards, with the exact total', async () => {
    const filter = { search: `list-${randomUUID()}` };
    const ids = [];
    for (let index = 0; index < 7; index += 1) ids.push((await migrated({ name: `${filter.search} ${index}` })).id);
    for (const first of [1, 2, 3, 7, 20]) {
      const seen: string[] = [];
      for (let after: string | null = null, more = true; more; ) {
        const users: Awaited<ReturnType<typeof pageOfUsers>> = await pageOfUsers({ filter, first, after });
        expect(users.totalCount).toBe(7);
        seen.push(...users.edges.map(({ node }) => node.id));
        more = users.pageInfo.hasNextPage;
        after = users.pageInfo.endCursor ?? null;
      }
      expect(seen).toEqual(ids);
    }
    const back = await pageOfUsers({ filter, last: 3 });
    expect(back.edges.map(({ node }) => node.id)).toEqual(ids.slice(4));
    const before = await pageOfUsers({ filter, last: 3, before: back.pageInfo.startCursor ?? '' });
    expect(before.edges.map(({ node }) => node.id)).toEqual(ids.slice(1, 4));
  });

  it('DG-01: users are found by a part of what they are, and by whether they are verified', async () => {
    const mark = randomUUID().slice(0, 8);
    const verified = await migrated({ surname: `Ö%_\\${mark}`, kycSent: true });
    const plain = await migrated({ externalId: `ö%_\\${mark}` });
    const found = async (filter: object) => (await pageOfUsers({ filter })).edges.map(({ node }) => node.id);
    expect(await found({ search: `%_\\${mark}` })).toEqual([verified.id, plain.id]);
    expect(await found({ search: mark.toUpperCase(), kycVerified: true })).toEqual([verified.id]);
    expect(await found({ search: mark, kycVerified: false })).toEqual([plain.id]);
    expect(await found({ search: `%${mark}` })).toEqual([]);
  });

  it('DG-13 DG-02: migrations come newest first; their rows in order, by pages', async () => {
    const users = Array.from({ length: 5 }, newUser);
    const made = [];
    for (let index = 0; index < 3; index += 1) {
      const { result } = await operate(p, token, MigrateUsersDocument, { users });
      made.unshift('id' in result ? result.id : '');
    }
    const { migrations } = await operate(p, token, MigrationsDocument, { first: 2 });
    expect(migrations.edges.map(({ node }) => node.id)).toEqual(made.slice(0, 2));
    expect(migrations.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: false });
    const after = migrations.pageInfo.endCursor ?? '';
    const next = await operate(p, token, MigrationsDocument, { first: 1, after });
    expect(next.migrations.edges.map(({ node }) => node.id)).toEqual(made.slice(2));
    const before = next.migrations.pageInfo.startCursor ?? '';
    const back = await operate(p, token, MigrationsDocument, { last: 1, before });
    expect(back.migrations.edges.map(({ node }) => node.id)).toEqual([made[1]]);

    const id = made[0]?.toUpperCase() ?? '';
    const first = await operate(p, token, MigrationDocument, { id, first: 2 });
    expect(first.migration).toMatchObject({ total: 5, skipped: 5, rows: { totalCount: 5 } });
    expect(first.migration?.rows.edges.map(({ node }) => node.index)).toEqual([1, 2]);
    const rest = await operate(p, token, MigrationDocument, {
      id,
      after: first.migration?.rows.pageInfo.endCursor ?? '',
    });
    expect(rest.migration?.rows.edges.map(({ node }) => node.index)).toEqual([3, 4, 5]);
    const last = await operate(p, token, MigrationDocument, { id, last: 2 });
    expect(last.migration?.rows.edges.map(({ node }) => node.index)).toEqual([4, 5]);
  });

  it('D7-06: a single migration by REST is kept too, refused or not', async () => {
    const rest = await migrationsOf(p, token);
    const user = { wallet_address: randomUUID(), email: `${randomUUID()}@x.y` };
    const { json } = await rest.one(user);
    await rest.one(user);
    const { migrations } = await operate(p, token, MigrationsDocument, { first: 2 });
    expect(migrations.edges.map(({ node }) => [node.total, node.success, node.skipped])).toEqual([
      [1, 0, 1],
      [1, 1, 0],
    ]);
    const id = migrations.edges[1]?.node.id ?? '';
    const { migration } = await operate(p, token, MigrationDocument, { id });
    expect(migration?.rows.edges[0]?.node).toMatchObject({ email: user.email, userId: json.id, status: 'created' });
  });

  it('DG-07 D7-03: what is of another node is as missing as what is not there', async () => {
    const user = await migrated();
    const { result } = await operate(p, token, MigrateUsersDocument, { users: [newUser()] });
    const migrationId = 'id' in result ? result.id : '';
    for (const id of [user.id, MISSING, 'no uuid']) {
      expect(await operate(p, otherToken, UserDocument, { id })).toEqual({ user: null });
      expect((await operate(p, otherToken, EraseUserDocument, { id })).result).toEqual({
        __typename: 'NotFoundError',
        message: 'not found',
      });
    }
    for (const id of [migrationId, MISSING, '']) {
      expect(await operate(p, otherToken, MigrationDocument, { id })).toEqual({ migration: null });
    }
    expect((await operate(p, token, UserDocument, { id: user.id.toUpperCase() })).user?.email).toBe(user.email);
    const { users } = await operate(p, otherToken, UsersDocument, {});
    expect(users.edges.map(({ node }) => node.id)).not.toContain(user.id);
  });

  it('DG-04: reading needs users:read, migrating needs users:migrate, erasing users:erase', async () => {
    const reader = await p.clientToken(await addClient(p, { scopes: ['users:read'] }));
    const writer = await p.clientToken(await addClient(p, { scopes: ['users:migrate'] }));
    const missing = { __typename: 'ForbiddenError', permission: 'users:migrate' };
    expect((await operate(p, reader, MigrateUserDocument, { input: newUser() })).result).toMatchObject(missing);
    expect((await operate(p, reader, MigrateUsersDocument, { users: [newUser()] })).result).toMatchObject(missing);
    expect((await operate(p, reader, EraseUserDocument, { id: MISSING })).result).toMatchObject({
      ...missing,
      permission: 'users:erase',
    });
    for (const field of ['users { totalCount }', 'migrations { totalCount }', `user(id: "${MISSING}") { id }`]) {
      const answer = await p.call('POST', '/graphql', { token: writer, json: { query: `{ ${field} }` } });
      expect(answer.json.errors[0].extensions).toMatchObject({ code: 'FORBIDDEN', permission: 'users:read' });
    }
    const mayNotRead = await p.call('POST', '/graphql', {
      token: writer,
      json: {
        query:
          'mutation ($u: [MigrateUserInput!]!) { migrateUsers(users: $u) { ... on Migration { rows { totalCount } } } }',
        variables: { u: [newUser()] },
      },
    });
    expect(mayNotRead.json.errors[0].extensions).toMatchObject({ permission: 'users:read' });
  });

  it('DG-05: a fault of the database is masked', async () => {
    await renameTable(p, 'outbox', 'outbox_away');
    const answer = await p
      .call('POST', '/graphql', {
        token,
        json: {
          query: 'mutation ($i: MigrateUserInput!) { migrateUser(input: $i) { __typename } }',
          variables: { i: newUser() },
        },
      })
      .finally(() => renameTable(p, 'outbox_away', 'outbox'));
    expect(answer.text).not.toMatch(/outbox|relation "|select /);
    expect(answer.json.errors).toHaveLength(1);
  });
});

async function pageOfUsers(variables: object) {
  return (await operate(p, token, UsersDocument, { ...variables })).users;
}
