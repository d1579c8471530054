import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { permissionsOfRole } from '../../src/access/identity/permissions.rules.ts';
import {
  createdSupervisor,
  grantStatus,
  login,
  operate,
  PASSWORD,
  tokenStatus,
} from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import {
  CreateSupervisorDocument,
  RevokeSessionsDocument,
  SetSupervisorPasswordDocument,
  SetSupervisorRoleDocument,
  SetSupervisorStatusDocument,
  SupervisorsDocument,
  UnlockSupervisorDocument,
} from './generated/graphql.ts';

const p = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

function newName(): string {
  return `Grace-${randomUUID()}`;
}

function loginStatus(username: string, password = PASSWORD): Promise<number> {
  return grantStatus(p, { grant_type: 'password', ...p.demo.client, username, password });
}

async function supervisors() {
  const { supervisors: found } = await operate(p, token, SupervisorsDocument, { first: 100 });
  return found.edges.map(({ node }) => node);
}

async function demoAdmin(): Promise<string> {
  const [first] = await supervisors();
  if (!first) throw new Error('the demo has one');
  return first.id;
}

describe('a supervisor', () => {
  it.each(['admin', 'operator', 'viewer'])(
    'DG-03, D3-26: is created as %s, with the permissions of the role, and can log in',
    async (role) => {
      const username = newName();
      const created = await createdSupervisor(p, token, { username, role });
      expect(created).toMatchObject({
        username,
        role,
        permissions: permissionsOfRole(role),
        status: 'ACTIVE',
        lockedUntil: null,
      });
      const { access_token } = await login(p, username.toUpperCase());
      expect(await tokenStatus(p, access_token)).toBe(200);
      expect((await supervisors()).find(({ id }) => id === created.id)).toMatchObject({ username, role });
      if (role === 'admin') await operate(p, token, SetSupervisorRoleDocument, { id: created.id, role: 'viewer' });
    },
  );

  it('D3-26: has a username unique within the node, case-insensitive', async () => {
    const username = newName();
    await createdSupervisor(p, token, { username });
    const input = { username: username.toUpperCase(), password: PASSWORD, role: 'viewer' };
    const { result } = await operate(p, token, CreateSupervisorDocument, { input });
    expect(result).toEqual({
      __typename: 'DuplicateError',
      reason: 'duplicate_username',
      message: 'the username is taken',
    });
    const other = await p.clientToken(p.demo.other_node.client);
    expect(await createdSupervisor(p, other, { username })).toMatchObject({ username });
  });

  it('D3-26: logs in only with the new password', async () => {
    const { id, username } = await createdSupervisor(p, token, { username: newName() });
    const password = 'another good password';
    const { result } = await operate(p, token, SetSupervisorPasswordDocument, { id: id.toUpperCase(), password });
    expect(result.__typename).toBe('Supervisor');
    expect([await loginStatus(username), await loginStatus(username, password)]).toEqual([401, 200]);
  });

  it('D3-26: cannot log in while disabled', async () => {
    const { id, username } = await addSupervisor(p, PASSWORD);
    const disabled = await operate(p, token, SetSupervisorStatusDocument, { id, status: 'DISABLED' });
    expect(disabled.result).toMatchObject({ status: 'DISABLED' });
    expect(await loginStatus(username)).toBe(401);
    const enabled = await operate(p, token, SetSupervisorStatusDocument, { id, status: 'ACTIVE' });
    expect(enabled.result).toMatchObject({ status: 'ACTIVE' });
    expect(await loginStatus(username)).toBe(200);
  });

  it('D3-26: shows the end of its lockout, and logs in at once after it is unlocked', async () => {
    const { id, username } = await addSupervisor(p, PASSWORD);
    for (let wrong = 0; wrong < 5; wrong += 1) expect(await loginStatus(username, 'wrong')).toBe(401);
    expect(await loginStatus(username)).toBe(401);
    const lockedUntil = (await supervisors()).find((one) => one.id === id)?.lockedUntil ?? '';
    expect(Date.parse(lockedUntil)).toBeGreaterThan(Date.now() + 14 * 60_000);
    const { result } = await operate(p, token, UnlockSupervisorDocument, { id });
    expect(result).toMatchObject({ __typename: 'Supervisor', lockedUntil: null });
    expect(await loginStatus(username)).toBe(200);
  });
});

describe('the sessions of a supervisor', () => {
  type Change = (id: string) => Promise<{ result: { __typename: string } }>;
  const changes: [string, Change][] = [
    ['another role', (id) => operate(p, token, SetSupervisorRoleDocument, { id, role: 'operator' })],
    ['the same role', (id) => operate(p, token, SetSupervisorRoleDocument, { id, role: 'viewer' })],
    ['another password', (id) => operate(p, token, SetSupervisorPasswordDocument, { id, password: PASSWORD })],
    ['disabling', (id) => operate(p, token, SetSupervisorStatusDocument, { id, status: 'DISABLED' })],
    ['enabling', (id) => operate(p, token, SetSupervisorStatusDocument, { id, status: 'ACTIVE' })],
    ['revoking them', (supervisorId) => operate(p, token, RevokeSessionsDocument, { supervisorId })],
  ];

  it.each(changes)('D3-26, D3-23: end after %s, both access and refresh tokens', async (_name, change) => {
    const [{ id, username }, other] = [await addSupervisor(p, PASSWORD), await addSupervisor(p, PASSWORD)];
    const [first, second, kept] = [await login(p, username), await login(p, username), await login(p, other.username)];
    expect((await change(id)).result.__typename).toBe('Supervisor');
    const statuses = [first, second, kept].map(({ access_token }) => tokenStatus(p, access_token));
    expect(await Promise.all(statuses)).toEqual([401, 401, 200]);
    const { refresh_token } = first;
    expect(await grantStatus(p, { grant_type: 'refresh_token', ...p.demo.client, refresh_token })).toBe(401);
  });

  it('D3-26: do not end after an unlock', async () => {
    const { id, username } = await addSupervisor(p, PASSWORD);
    const { access_token } = await login(p, username);
    await operate(p, token, UnlockSupervisorDocument, { id });
    expect(await tokenStatus(p, access_token)).toBe(200);
  });
});

describe('the last active admin', () => {
  it('D3-26: cannot be disabled or demoted, not even by its own login, and keeps its sessions', async () => {
    const id = await demoAdmin();
    const { access_token } = await login(p, p.demo.supervisor.username, { password: p.demo.supervisor.password });
    const refused = [
      await operate(p, token, SetSupervisorStatusDocument, { id, status: 'DISABLED' }),
      await operate(p, token, SetSupervisorRoleDocument, { id, role: 'operator' }),
      await operate(p, access_token, SetSupervisorStatusDocument, { id, status: 'DISABLED' }),
    ];
    for (const { result } of refused) {
      expect(result).toEqual({
        __typename: 'PreconditionError',
        message: 'the last active admin of a tenant cannot be disabled or get another role',
      });
    }
    expect(await tokenStatus(p, access_token)).toBe(200);
    expect((await supervisors()).find((one) => one.id === id)).toMatchObject({ role: 'admin', status: 'ACTIVE' });
  });

  it('D3-26: is the remaining one after another active admin was demoted', async () => {
    const second = await createdSupervisor(p, token, { username: newName(), role: 'admin' });
    const id = await demoAdmin();
    const demoted = await operate(p, token, SetSupervisorRoleDocument, { id, role: 'operator' });
    expect(demoted.result).toMatchObject({ role: 'operator' });
    const { result } = await operate(p, token, SetSupervisorStatusDocument, { id: second.id, status: 'DISABLED' });
    expect(result.__typename).toBe('PreconditionError');
    await operate(p, token, SetSupervisorRoleDocument, { id, role: 'admin' });
    const disabled = await operate(p, token, SetSupervisorStatusDocument, { id: second.id, status: 'DISABLED' });
    expect(disabled.result).toMatchObject({ status: 'DISABLED' });
  });
});
