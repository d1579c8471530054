import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import {
  createdClient,
  createdSupervisor,
  grantStatus,
  login,
  operate,
  PASSWORD,
  tokenStatus,
} from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import {
  ClientDocument,
  type ClientInput,
  CreateClientDocument,
  CreateSupervisorDocument,
  PatchClientDocument,
  RevokeSessionsDocument,
  RotateClientSecretDocument,
  SetClientStatusDocument,
  SetSupervisorPasswordDocument,
  SetSupervisorRoleDocument,
  SetSupervisorStatusDocument,
  SupervisorsDocument,
  UnlockSupervisorDocument,
  UpdateClientDocument,
} from './generated/graphql.ts';

const p = usePortcullis();
/** Holds everything. */
let token: string;
/** Holds clients:manage and what a viewer has but for one permission. */
let weak: string;

const VIEWER = PERMISSIONS.filter((name) => name.endsWith(':read') && name !== 'audit:read');
const LACKED = 'users:read';
const HELD = [...VIEWER.filter((name) => name !== LACKED), 'clients:manage'];
const INPUT: ClientInput = { name: 'Trader', grantTypes: ['CLIENT_CREDENTIALS'], scopes: [] };
const FORBIDDEN = { __typename: 'ForbiddenError', permission: LACKED };

beforeAll(async () => {
  token = await p.clientToken();
  weak = await p.clientToken(await addClient(p, { scopes: HELD }));
});

/** A client with the one scope that the weak administrator lacks. */
async function strongClient(): Promise<string> {
  return (await createdClient(p, token, { scopes: ['accounts:read', LACKED] })).client.id;
}

async function viewer(): Promise<string> {
  return (await createdSupervisor(p, token, { username: `viewer-${randomUUID()}` })).id;
}

function client(id: string) {
  return operate(p, token, ClientDocument, { id });
}

describe('a client with clients:manage and few other permissions', () => {
  it('D3-23, D3-26: creates clients with permissions that it has, and none with others', async () => {
    const some = await operate(p, weak, CreateClientDocument, { input: { ...INPUT, scopes: ['accounts:read'] } });
    expect(some.result.__typename).toBe('CreatedClient');
    const input = { ...INPUT, scopes: ['accounts:read', LACKED, 'audit:read'] };
    expect((await operate(p, weak, CreateClientDocument, { input })).result).toMatchObject(FORBIDDEN);
  });

  it('D3-23: creates no client with an unknown scope', async () => {
    const { result } = await operate(p, weak, CreateClientDocument, { input: { ...INPUT, scopes: ['made:up'] } });
    expect(result).toMatchObject({ __typename: 'ForbiddenError', permission: 'made:up' });
  });

  it('D3-26: neither replaces a client with more permissions nor gives a client more', async () => {
    const strong = await strongClient();
    const before = await client(strong);
    const less = await operate(p, weak, UpdateClientDocument, { id: strong, input: INPUT });
    expect(less.result).toMatchObject(FORBIDDEN);
    const patched = await operate(p, weak, PatchClientDocument, { id: strong, input: { name: 'Renamed' } });
    expect(patched.result).toMatchObject(FORBIDDEN);
    expect(await client(strong)).toEqual(before);
    const { client: own } = await createdClient(p, weak);
    const more = await operate(p, weak, UpdateClientDocument, { id: own.id, input: { ...INPUT, scopes: [LACKED] } });
    expect(more.result).toMatchObject(FORBIDDEN);
    const added = await operate(p, weak, PatchClientDocument, { id: own.id, input: { scopes: [LACKED] } });
    expect(added.result).toMatchObject(FORBIDDEN);
    const same = await operate(p, weak, UpdateClientDocument, { id: own.id, input: { ...INPUT, name: 'Renamed' } });
    expect(same.result).toMatchObject({ __typename: 'Client', name: 'Renamed' });
  });

  it('D3-26: rotates no secret of a client with more permissions', async () => {
    const id = await strongClient();
    expect((await operate(p, weak, RotateClientSecretDocument, { id })).result).toMatchObject(FORBIDDEN);
    const { client: own } = await createdClient(p, weak);
    const { result } = await operate(p, weak, RotateClientSecretDocument, { id: own.id });
    expect(result.__typename).toBe('CreatedClient');
  });

  it('D3-26: disables a client with more permissions, but does not enable it', async () => {
    const id = await strongClient();
    const disabled = await operate(p, weak, SetClientStatusDocument, { id, status: 'DISABLED' });
    expect(disabled.result).toMatchObject({ status: 'DISABLED' });
    const enabled = await operate(p, weak, SetClientStatusDocument, { id, status: 'ACTIVE' });
    expect(enabled.result).toMatchObject(FORBIDDEN);
    expect(await client(id)).toMatchObject({ client: { status: 'DISABLED' } });
  });

  it('D3-26: creates no supervisor whose role has more permissions', async () => {
    const input = { username: 'weak-made', password: PASSWORD, role: 'viewer' };
    expect((await operate(p, weak, CreateSupervisorDocument, { input })).result).toMatchObject(FORBIDDEN);
    const { supervisors } = await operate(p, token, SupervisorsDocument, { first: 100 });
    expect(supervisors.edges.map(({ node }) => node.username)).not.toContain('weak-made');
  });

  it('D3-26: sets no password and no role of a supervisor with more permissions, and does not enable one', async () => {
    const id = await viewer();
    const password = await operate(p, weak, SetSupervisorPasswordDocument, { id, password: 'another password' });
    expect(password.result).toMatchObject(FORBIDDEN);
    const role = await operate(p, weak, SetSupervisorRoleDocument, { id, role: 'viewer' });
    expect(role.result).toMatchObject(FORBIDDEN);
    const disabled = await operate(p, weak, SetSupervisorStatusDocument, { id, status: 'DISABLED' });
    expect(disabled.result).toMatchObject({ status: 'DISABLED' });
    const enabled = await operate(p, weak, SetSupervisorStatusDocument, { id, status: 'ACTIVE' });
    expect(enabled.result).toMatchObject(FORBIDDEN);
  });

  it('D3-26: neither gives nor takes a role with more permissions', async () => {
    const viewers = await p.clientToken(await addClient(p, { scopes: [...VIEWER, 'clients:manage'] }));
    const id = await viewer();
    const up = await operate(p, viewers, SetSupervisorRoleDocument, { id, role: 'operator' });
    expect(up.result).toMatchObject({ __typename: 'ForbiddenError', permission: 'wallets:write' });
    await operate(p, token, SetSupervisorRoleDocument, { id, role: 'operator' });
    const down = await operate(p, viewers, SetSupervisorRoleDocument, { id, role: 'viewer' });
    expect(down.result).toMatchObject({ __typename: 'ForbiddenError', permission: 'wallets:write' });
  });

  it('D3-26, D3-30: revokes the sessions of any supervisor, but unlocks none whose role has more permissions', async () => {
    const id = await viewer();
    const revoked = await operate(p, weak, RevokeSessionsDocument, { supervisorId: id });
    expect(revoked.result.__typename).toBe('Supervisor');
    const unlocked = await operate(p, weak, UnlockSupervisorDocument, { id });
    expect(unlocked.result).toMatchObject(FORBIDDEN);
  });

  it('D3-30: gets no additional guesses at a password by unlocking', async () => {
    const { id, username } = await createdSupervisor(p, token, { username: `guessed-${randomUUID()}` });
    const grant = { grant_type: 'password', ...p.demo.client, username };
    for (let wrong = 0; wrong < 5; wrong += 1) {
      expect(await grantStatus(p, { ...grant, password: `guess ${wrong}` })).toBe(401);
      expect((await operate(p, weak, UnlockSupervisorDocument, { id })).result).toMatchObject(FORBIDDEN);
    }
    expect(await grantStatus(p, { ...grant, password: PASSWORD })).toBe(401);
    const unlocked = await operate(p, token, UnlockSupervisorDocument, { id });
    expect(unlocked.result.__typename).toBe('Supervisor');
    expect(await grantStatus(p, { ...grant, password: PASSWORD })).toBe(200);
  });
});

describe("a client's own token", () => {
  it('D3-26: cannot change that client; a login through it can', async () => {
    const own = { __typename: 'ForbiddenError', permission: 'clients:manage' };
    const { client: made, credentials } = await createdClient(p, token, {
      grantTypes: ['CLIENT_CREDENTIALS', 'PASSWORD'],
      scopes: [...PERMISSIONS],
    });
    const id = made.id.toUpperCase();
    const mine = await p.clientToken(credentials);
    const input = { ...INPUT, scopes: [] };
    const refused = await Promise.all([
      operate(p, mine, UpdateClientDocument, { id, input }),
      operate(p, mine, RotateClientSecretDocument, { id }),
      operate(p, mine, SetClientStatusDocument, { id, status: 'DISABLED' }),
      operate(p, mine, SetClientStatusDocument, { id, status: 'ACTIVE' }),
    ]);
    for (const { result } of refused) expect(result).toMatchObject(own);
    const { updatedAt, status, scopes } = made;
    expect(await client(id)).toMatchObject({ client: { updatedAt, status, scopes } });
    const { username } = await createdSupervisor(p, token, { username: `root-${randomUUID()}`, role: 'admin' });
    const person = await login(p, username, { client: credentials });
    const { result } = await operate(p, person.access_token, SetClientStatusDocument, { id, status: 'DISABLED' });
    expect(result).toMatchObject({ __typename: 'Client', status: 'DISABLED' });
    expect(await tokenStatus(p, person.access_token)).toBe(401);
  });
});

const BOUNDS = {
  allowedIps: ['127.0.0.0/8', '::1'],
  rateLimit: { requestsPerSecond: 1_000, requestsPerMinute: 10_000, requestsPerHour: 50_000 },
  monthlyLimit: 100_000,
};
const BOUNDED: ClientInput = {
  name: 'Clone',
  grantTypes: ['CLIENT_CREDENTIALS'],
  scopes: ['clients:manage'],
  ...BOUNDS,
};
const FREER: [string, Partial<ClientInput>][] = [
  ['all addresses', { allowedIps: [] }],
  ['one more address', { allowedIps: ['127.0.0.1', '192.0.2.1'] }],
  ['a wider network', { allowedIps: ['126.0.0.0/7'] }],
  ['a higher rate', { rateLimit: { ...BOUNDS.rateLimit, requestsPerMinute: 10_001 } }],
  ['no rate', { rateLimit: null }],
  ['a higher quota', { monthlyLimit: 100_001 }],
  ['no quota', { monthlyLimit: null }],
];
const REFUSED = { __typename: 'ForbiddenError', permission: 'clients:manage' };

describe('a client with limits', () => {
  /** Of a client with every kind of limit but a certificate, each wide enough for these tests. */
  let bound: string;
  /** Of a login through that client. */
  let person: string;

  beforeAll(async () => {
    const { credentials } = await createdClient(p, token, {
      ...BOUNDED,
      grantTypes: ['CLIENT_CREDENTIALS', 'PASSWORD'],
      scopes: [...PERMISSIONS],
    });
    bound = await p.clientToken(credentials);
    const { username } = await createdSupervisor(p, token, { username: `admin-${randomUUID()}`, role: 'admin' });
    person = (await login(p, username, { client: credentials })).access_token;
  });

  it('D3-30: creates clients with the same or stricter limits', async () => {
    const narrow: Partial<ClientInput> = { allowedIps: ['127.0.0.1', '::ffff:127.1.0.0/112'], monthlyLimit: 1 };
    for (const input of [BOUNDED, { ...BOUNDED, ...narrow }]) {
      expect((await operate(p, bound, CreateClientDocument, { input })).result.__typename).toBe('CreatedClient');
    }
  });

  it.each(FREER)(
    'D3-30: neither creates nor changes nor takes over a client with %s; a login does',
    async (_name, freer) => {
      const input = { ...BOUNDED, ...freer };
      expect((await operate(p, bound, CreateClientDocument, { input })).result).toMatchObject(REFUSED);
      const { client: own } = await createdClient(p, bound, BOUNDED);
      expect((await operate(p, bound, UpdateClientDocument, { id: own.id, input })).result).toMatchObject(REFUSED);
      expect((await operate(p, bound, ClientDocument, { id: own.id })).client).toEqual(own);

      const updated = await operate(p, person, UpdateClientDocument, { id: own.id, input });
      expect(updated.result.__typename).toBe('Client');
      expect((await operate(p, person, CreateClientDocument, { input })).result.__typename).toBe('CreatedClient');
      const { id } = own;
      expect((await operate(p, bound, RotateClientSecretDocument, { id })).result).toMatchObject(REFUSED);
      const disabled = await operate(p, bound, SetClientStatusDocument, { id, status: 'DISABLED' });
      expect(disabled.result).toMatchObject({ status: 'DISABLED' });
      const enabled = await operate(p, bound, SetClientStatusDocument, { id, status: 'ACTIVE' });
      expect(enabled.result).toMatchObject(REFUSED);
      const narrowed = await operate(p, bound, UpdateClientDocument, { id, input: BOUNDED });
      expect(narrowed.result).toMatchObject({ __typename: 'Client', ...BOUNDS });
    },
  );

  it('D3-30: gets an error that says what to change', async () => {
    const input = { ...BOUNDED, allowedIps: ['192.0.2.0/24'], monthlyLimit: null };
    const { result } = await operate(p, bound, CreateClientDocument, { input });
    expect(result).toEqual({
      ...REFUSED,
      message:
        "an API token cannot create or change a client or supervisor with fewer restrictions than its own client: allow only addresses that your client may use; set a monthly limit that does not exceed your client's",
    });
  });

  it('D3-30: takes over no supervisor, whose logins have no limits; it may still revoke their access', async () => {
    const { id } = await createdSupervisor(p, token, { username: `viewer-${randomUUID()}` });
    const supervisor = { username: `made-${randomUUID()}`, password: PASSWORD, role: 'viewer' };
    const refused = [
      await operate(p, bound, CreateSupervisorDocument, { input: supervisor }),
      await operate(p, bound, SetSupervisorPasswordDocument, { id, password: PASSWORD }),
      await operate(p, bound, SetSupervisorRoleDocument, { id, role: 'operator' }),
      await operate(p, bound, UnlockSupervisorDocument, { id }),
      await operate(p, bound, SetSupervisorStatusDocument, { id, status: 'ACTIVE' }),
    ];
    for (const { result } of refused) expect(result).toMatchObject(REFUSED);
    const revoked = await operate(p, bound, RevokeSessionsDocument, { supervisorId: id });
    expect(revoked.result.__typename).toBe('Supervisor');
    const disabled = await operate(p, bound, SetSupervisorStatusDocument, { id, status: 'DISABLED' });
    expect(disabled.result).toMatchObject({ status: 'DISABLED' });
    const enabled = await operate(p, person, SetSupervisorStatusDocument, { id, status: 'ACTIVE' });
    expect(enabled.result).toMatchObject({ status: 'ACTIVE' });
  });

  it('D3-30: is checked against its current limits, not those at the time of its token', async () => {
    const { client, credentials } = await createdClient(p, token, { ...BOUNDED, allowedIps: [] });
    const own = await p.clientToken(credentials);
    const input = { ...BOUNDED, allowedIps: [] };
    expect((await operate(p, own, CreateClientDocument, { input })).result.__typename).toBe('CreatedClient');
    await operate(p, token, UpdateClientDocument, { id: client.id, input: BOUNDED });
    expect((await operate(p, own, CreateClientDocument, { input })).result).toMatchObject(REFUSED);
  });

  it('D3-30: passes on its certificate requirement to clients that it creates', async () => {
    const rest = '0'.repeat(60);
    const certificate = { 'ssl-client-fingerprint': `AB:CD${rest}` };
    const client = await addClient(p, {
      scopes: ['clients:manage'],
      require_certificate: true,
      cert_fingerprint: `ab:cd${rest}`,
    });
    const json = { grant_type: 'client_credentials', ...client };
    const token = (await p.call('POST', '/v2/oauth/token', { json, headers: certificate })).json.access_token;
    const made = async (settings: string) => {
      const query = `mutation { createClient(input: {name: "C", grantTypes: [CLIENT_CREDENTIALS], scopes: [], ${settings}}) { __typename } }`;
      const answer = await p.call('POST', '/graphql', { token, headers: certificate, json: { query } });
      return answer.json.data.createClient.__typename;
    };
    expect(await made(`requireCertificate: true, certFingerprint: "ABCD${rest}"`)).toBe('CreatedClient');
    for (const settings of [
      `certFingerprint: "abcd${rest}"`,
      'requireCertificate: true',
      `requireCertificate: true, certFingerprint: "ab:ce${rest}"`,
    ]) {
      expect(await made(settings)).toBe('ForbiddenError');
    }
  });
});
