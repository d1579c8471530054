import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { operate } from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { eventsOf, migrationsOf } from '../support/user-migrations/calls.ts';
import {
  MigrateUserDocument,
  MigrateUsersDocument,
  MigrationDocument,
  MigrationsDocument,
  UsersDocument,
} from './generated/graphql.ts';

const p = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

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
  it('DG-07 4.6-01 D7-08: returns the user as REST does, with its event', async () => {
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

  it('DG-07: shows when the user was created as a later query does, to the millisecond', async () => {
    const ask = async (query: string, variables: object) =>
      (await p.call('POST', '/graphql', { token, json: { query, variables } })).json.data;
    const { user: created } = await ask(
      'mutation ($input: MigrateUserInput!) { user: migrateUser(input: $input) { ... on User { id createdAt } } }',
      { input: newUser() },
    );
    expect(created.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(await ask('query ($id: ID!) { user(id: $id) { id createdAt } }', { id: created.id })).toEqual({
      user: created,
    });
  });
});

describe('migrateUsers', () => {
  it('DG-09 4.7-03 D7-04: returns the migration, and the outcome of each row', async () => {
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

  it('DG-09: accepts 1 to 500 rows, and names their invalid members', async () => {
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

describe('the lists of users and migrations', () => {
  it('DG-01: users are found by part of their data, and by whether they are verified', async () => {
    const mark = randomUUID().slice(0, 8);
    const verified = await migrated({ surname: `Ö%_\\${mark}`, kycSent: true });
    const plain = await migrated({ externalId: `ö%_\\${mark}` });
    const found = async (filter: object) => (await pageOfUsers({ filter })).edges.map(({ node }) => node.id);
    expect(await found({ search: `%_\\${mark}` })).toEqual([verified.id, plain.id]);
    expect(await found({ search: mark.toUpperCase(), kycVerified: true })).toEqual([verified.id]);
    expect(await found({ search: mark, kycVerified: false })).toEqual([plain.id]);
    expect(await found({ search: `%${mark}` })).toEqual([]);
  });

  it('D7-06: a single migration by REST is listed too, rejected or not', async () => {
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
});

async function pageOfUsers(variables: object) {
  return (await operate(p, token, UsersDocument, { ...variables })).users;
}
