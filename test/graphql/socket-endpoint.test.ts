import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { closeSockets, openSocket, rawSocket } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

const SHIPPED = parse(readFileSync(join(import.meta.dirname, '../../gateway.yaml'), 'utf8'));
const QUERY = '{ me { subject } }';

const file = beforeTests(() => gatewayFile({}));
const p = beforeTests(() => startPortcullis({ env: { GATEWAY_CONFIG: file.path } }));
afterEach(closeSockets);

/** Puts these settings of `/graphql` in force; undefined: there is none. */
async function asks(settings: object | undefined): Promise<void> {
  const others = SHIPPED.endpoints.filter(({ path }: { path: string }) => path !== '/graphql');
  const [shipped] = SHIPPED.endpoints.filter(({ path }: { path: string }) => path === '/graphql');
  const endpoints = settings === undefined ? others : [...others, { ...shipped, ...settings }];
  await writeFile(file.path, JSON.stringify({ ...SHIPPED, endpoints }));
  await p.service.reload();
}

/** What an operation on a socket is answered with: its type, or the code of its error. */
async function told({ answerTo }: Awaited<ReturnType<typeof openSocket>>): Promise<string> {
  const { type, payload } = await answerTo(QUERY);
  return (type === 'error' && payload[0]?.extensions.code) || type;
}

/** The code that a socket is closed with for its first message. */
async function closedWith(token: string, headers: Record<string, string> = {}): Promise<number> {
  const { init, closed } = await rawSocket(p, { headers });
  init(token);
  return (await closed)[0];
}

const statusOf = async (token: string) => (await p.call('POST', '/graphql', { token, json: { query: QUERY } })).status;
const tokenOf = (tokenClass: 'user' | 'legacy' | 'discover') =>
  signed(p, apiClaims(p), { secret: p.service.context.secrets.jwt[tokenClass].current });

/** What gateway.yaml asks, the class of a token with accounts:read, and what HTTP and a socket answer it with. */
const rows: [settings: object, tokenClass: 'user' | 'legacy' | 'discover', status: number, code: number | undefined][] =
  [
    [{}, 'user', 200, undefined],
    [{}, 'legacy', 200, undefined],
    [{}, 'discover', 401, 4401],
    [{ tokens: ['user'] }, 'user', 200, undefined],
    [{ tokens: ['user'] }, 'legacy', 401, 4401],
    [{ tokens: ['legacy'] }, 'user', 401, 4401],
    [{ tokens: ['discover'] }, 'discover', 200, undefined],
    [{ permissions: ['accounts:read'] }, 'user', 200, undefined],
    [{ permissions: ['accounts:read', 'audit:read'] }, 'user', 403, 4403],
    [{ permissions: ['audit:read'], tokens: ['legacy'] }, 'user', 401, 4401],
  ];

describe('the gateway.yaml settings of /graphql', () => {
  it.each(rows)('DG-14: %j: a token of class %s gets %i over HTTP, and on a socket %s', async (...row) => {
    const [settings, tokenClass, status, code] = row;
    await asks(settings);
    const token = tokenOf(tokenClass);
    expect(await statusOf(token)).toBe(status);
    if (code === undefined) expect(await told(await openSocket(p, token))).toBe('next');
    else expect(await closedWith(token)).toBe(code);
  });

  it('DG-14 D2-16: apply to each operation of an open socket as soon as they are in force', async () => {
    await asks({});
    const socket = await openSocket(p, tokenOf('user'));
    expect(await told(socket)).toBe('next');
    const steps: [settings: object | undefined, answer: string][] = [
      [{ permissions: ['audit:read'] }, 'FORBIDDEN'],
      [{ tokens: ['legacy'] }, 'UNAUTHENTICATED'],
      [undefined, 'UNAUTHENTICATED'],
      [{ permissions: ['accounts:read'] }, 'next'],
    ];
    for (const [settings, answer] of steps) {
      await asks(settings);
      expect([settings, await told(socket)]).toEqual([settings, answer]);
    }
  });
});

describe('the first message of a socket', () => {
  beforeAll(() => asks({}));

  it('D2-16: is closed with 4403 if the address of the client is not allowed', async () => {
    const guarded = await addClient(p, { allowed_ips: ['127.0.0.1'] });
    const token = await p.clientToken(guarded);
    await openSocket(p, token);
    expect(await closedWith(token, { 'X-Forwarded-For': '203.0.113.9' })).toBe(4403);
    expect(await closedWith(token, { 'X-Forwarded-For': '127.0.0.1, unknown', 'X-Real-IP': '127.0.0.1' })).toBe(4403);
  });

  it('D2-16: is closed with 4403 if the client requires a certificate and sent none', async () => {
    const guarded = await addClient(p, { require_certificate: true, cert_fingerprint: 'AA:BB' });
    const headers = { 'ssl-client-fingerprint': 'aabb' };
    const grant = { grant_type: 'client_credentials', ...guarded };
    const issued = await p.call('POST', '/v2/oauth/token', { json: grant, headers });
    await openSocket(p, issued.json.access_token, { headers });
    expect(await closedWith(issued.json.access_token)).toBe(4403);
  });

  it('D2-16: is closed with 4401 without a valid token', async () => {
    expect(await closedWith('not.a.token')).toBe(4401);
  });
});
