import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { createdClient, createdSupervisor, login, operate, PASSWORD } from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import {
  ClientDocument,
  type ClientInput,
  CreateClientDocument,
  CreateSupervisorDocument,
  RevokeSessionsDocument,
  RotateClientSecretDocument,
  SetClientStatusDocument,
  SetSupervisorPasswordDocument,
  SetSupervisorRoleDocument,
  SetSupervisorStatusDocument,
  UnlockSupervisorDocument,
  UpdateClientDocument,
} from './generated/graphql.ts';

const p = usePortcullis();
/** Of a client without limits. */
let free: string;
/** Of a client with every kind of limit but a certificate, each wide enough for these tests. */
let bound: string;
/** Of a login through that client. */
let person: string;

const BOUNDS = {
  allowedIps: ['127.0.0.0/8', '::1'],
  rateLimit: { requestsPerSecond: 1_000, requestsPerMinute: 10_000, requestsPerHour: 50_000 },
  monthlyLimit: 100_000,
};
const INPUT: ClientInput = { name: 'Clone', grantTypes: ['CLIENT_CREDENTIALS'], scopes: ['clients:manage'], ...BOUNDS };
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

beforeAll(async () => {
  free = await p.clientToken();
  const { credentials } = await createdClient(p, free, {
    ...INPUT,
    grantTypes: ['CLIENT_CREDENTIALS', 'PASSWORD'],
    scopes: [...PERMISSIONS],
  });
  bound = await p.clientToken(credentials);
  const { username } = await createdSupervisor(p, free, { username: `admin-${randomUUID()}`, role: 'admin' });
  person = (await login(p, username, { client: credentials })).access_token;
});

describe('a client that has limits', () => {
  it('D3-30: makes clients that are as free as itself, or less', async () => {
    const narrow: Partial<ClientInput> = { allowedIps: ['127.0.0.1', '::ffff:127.1.0.0/112'], monthlyLimit: 1 };
    for (const input of [INPUT, { ...INPUT, ...narrow }]) {
      expect((await operate(p, bound, CreateClientDocument, { input })).result.__typename).toBe('CreatedClient');
    }
  });

  it.each(FREER)('D3-30: makes, changes and takes hold of no client with %s; a login does', async (_name, freer) => {
    const input = { ...INPUT, ...freer };
    expect((await operate(p, bound, CreateClientDocument, { input })).result).toMatchObject(REFUSED);
    const { client: own } = await createdClient(p, bound, INPUT);
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
    const narrowed = await operate(p, bound, UpdateClientDocument, { id, input: INPUT });
    expect(narrowed.result).toMatchObject({ __typename: 'Client', ...BOUNDS });
  });

  it('D3-30: says what to change', async () => {
    const input = { ...INPUT, allowedIps: ['192.0.2.0/24'], monthlyLimit: null };
    const { result } = await operate(p, bound, CreateClientDocument, { input });
    expect(result).toEqual({
      ...REFUSED,
      message:
        "an API token cannot create or change a client or supervisor with fewer restrictions than its own client: allow only addresses that your client may use; set a monthly limit that does not exceed your client's",
    });
  });

  it('D3-30: takes hold of no supervisor, whose logins are without limits; ends their access as before', async () => {
    const { id } = await createdSupervisor(p, free, { username: `viewer-${randomUUID()}` });
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

  it('D3-30: is held to its limits as they are now, not as they were when its token was issued', async () => {
    const { client, credentials } = await createdClient(p, free, { ...INPUT, allowedIps: [] });
    const token = await p.clientToken(credentials);
    const input = { ...INPUT, allowedIps: [] };
    expect((await operate(p, token, CreateClientDocument, { input })).result.__typename).toBe('CreatedClient');
    await operate(p, free, UpdateClientDocument, { id: client.id, input: INPUT });
    expect((await operate(p, token, CreateClientDocument, { input })).result).toMatchObject(REFUSED);
  });

  it('D3-30: hands on the certificate that it must show', async () => {
    const certificate = { 'ssl-client-fingerprint': 'AB:CD' };
    const client = await addClient(p, {
      scopes: ['clients:manage'],
      require_certificate: true,
      cert_fingerprint: 'ab:cd',
    });
    const json = { grant_type: 'client_credentials', ...client };
    const token = (await p.call('POST', '/v2/oauth/token', { json, headers: certificate })).json.access_token;
    const made = async (settings: string) => {
      const query = `mutation { createClient(input: {name: "C", grantTypes: [CLIENT_CREDENTIALS], scopes: [], ${settings}}) { __typename } }`;
      const answer = await p.call('POST', '/graphql', { token, headers: certificate, json: { query } });
      return answer.json.data.createClient.__typename;
    };
    expect(await made('requireCertificate: true, certFingerprint: "ABCD"')).toBe('CreatedClient');
    for (const settings of [
      'certFingerprint: "abcd"',
      'requireCertificate: true',
      'requireCertificate: true, certFingerprint: "ab:ce"',
    ]) {
      expect(await made(settings)).toBe('ForbiddenError');
    }
  });
});
