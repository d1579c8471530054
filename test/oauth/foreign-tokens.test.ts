import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { recordOf } from '../support/audit/records.ts';
import { startUpstream } from '../support/gateway/forwarder.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { basicOf, postForm } from '../support/oauth/requests.ts';

const logged: Record<string, unknown>[] = [];
const log: Log = { ...silentLog, info: (fields) => void logged.push({ ...fields }) };

const upstream = beforeTests(() => startUpstream((_req, res) => res.end('ok')));
const p = beforeTests(() => startPortcullis({ overrides: { log }, env: { DISCOVERS_UPSTREAM_URL: upstream.url } }));

const CLASSES = ['legacy', 'discover'] as const;
type TokenClass = 'user' | (typeof CLASSES)[number];
type Part = Record<string, unknown>;

const now = (more = 0) => Math.floor(p.service.context.nowMs() / 1000) + more;

/** A token that another program has signed with the secret of a class. */
function token(tokenClass: TokenClass, header: Part, claims: Part): string {
  const own =
    tokenClass === 'user' ? {} : { sub: 'a-service', client_id: undefined, jti: undefined, token_use: undefined };
  const { current: secret } = p.service.context.secrets.jwt[tokenClass];
  return signed(p, apiClaims(p, { ...own, ...claims }), { header, secret });
}

async function show(tokenClass: TokenClass, header: Part, claims: Part) {
  const id = randomUUID();
  const path = tokenClass === 'discover' ? '/v1/discovers/nodes' : '/v1/accounts';
  const headers = { 'x-correlation-id': id };
  const { status } = await p.call('GET', path, { token: token(tokenClass, header, claims), headers });
  return { id, status };
}

type Row = [name: string, header: () => Part, claims: () => Part];
const none = () => ({});

/** What other issuers write; each is accepted of the legacy and discover classes. */
const accepted: Row[] = [
  ['the kid of Keycloak (a fingerprint)', () => ({ kid: 'Xk3pFZ9rQm0yqzLZ3pJ1uO6xT2d-w_8vB4nC5aH7sEg' }), none],
  ['a kid in the form of this product', () => ({ kid: 'legacy.0000000000000000' }), none],
  ['the kid __proto__', () => ({ kid: '__proto__' }), none],
  ['an empty kid', () => ({ kid: '' }), none],
  ['a kid that is a number, as Python has', () => ({ kid: 7 }), none],
  ['x5t, jku and cty (.NET)', () => ({ kid: 'A1', x5t: 'A1', jku: 'https://a.example', cty: 'JWT' }), none],
  ['typ at+jwt (RFC 9068)', () => ({ typ: 'at+jwt', kid: 'k' }), none],
  ['without typ (PHP)', () => ({ typ: undefined }), none],
  ['an aud that is an array of one, in capitals', none, () => ({ aud: [p.demo.node_id.toUpperCase()] })],
  ['nbf 59 seconds ahead', none, () => ({ nbf: now(59) })],
  ['times with fractions (Python)', none, () => ({ nbf: now() + 0.4, iat: now() + 0.4, exp: now(60) + 0.4 })],
  ['a scope that is an array', none, () => ({ scope: ['x', 'accounts:read'] })],
  ['a client_id that is not a UUID', none, () => ({ client_id: 'a-service' })],
  ['members that are null', none, () => ({ client_id: null, jti: null, sid: null, nbf: null, token_use: null })],
  ['unknown claims (Keycloak)', none, () => ({ azp: 'account', acr: '1', realm_access: { roles: [] } })],
];

type Refusal = [...Row, reason: string];

/** What is refused of every class, with the reason in the log. */
const refused: Refusal[] = [
  ['two audiences', none, () => ({ aud: [p.demo.node_id, p.demo.other_node.node_id] }), 'audience'],
  ['an aud in an array in an array', none, () => ({ aud: [[p.demo.node_id]] }), 'audience'],
  ['an aud that is an object', none, () => ({ aud: { 0: p.demo.node_id, length: 1 } }), 'audience'],
  ['without aud', none, () => ({ aud: undefined }), 'audience'],
  ["another node than its client's", none, () => ({ client_id: p.demo.other_node.client.client_id }), 'audience'],
  ['nbf 90 seconds ahead', none, () => ({ nbf: now(90) }), 'not_yet_valid'],
  ['nbf that is infinite', none, () => ({ nbf: 1e300 }), 'not_yet_valid'],
  ['nbf that is text', none, () => ({ nbf: String(now()) }), 'invalid_claims'],
  ['exp that is text', none, () => ({ exp: String(now(60)) }), 'invalid_claims'],
  ['exp that has passed, and two audiences', none, () => ({ exp: now(-1) - 0.5, aud: ['a', 'b'] }), 'expired'],
  ['without sub', none, () => ({ sub: undefined }), 'invalid_claims'],
  ['an unknown token_use', none, () => ({ token_use: 'id' }), 'invalid_claims'],
  ['the use of a refresh token', none, () => ({ token_use: 'refresh' }), 'another_class'],
  ['a crit that is unknown', () => ({ crit: ['exp'], exp: 1 }), none, 'signature'],
  ['alg none in its header', () => ({ alg: 'none', kid: 'k' }), none, 'signature'],
];

/** What is accepted of the other classes, and of the user class is not. */
const strict: Refusal[] = [
  ['an unknown kid', () => ({ kid: 'user.0000000000000000' }), none, 'signature'],
  ['an aud that is an array of one', none, () => ({ aud: [p.demo.node_id] }), 'audience'],
  ['nbf two seconds ahead', none, () => ({ nbf: now(2) }), 'not_yet_valid'],
  ['a scope that is an array', none, () => ({ scope: ['accounts:read'] }), 'invalid_claims'],
  ['a client that does not exist', none, () => ({ client_id: randomUUID() }), 'not_admitted'],
];

async function expectReason(id: string, reason: string): Promise<void> {
  const line = () => logged.find(({ correlation_id }) => correlation_id === id);
  await vi.waitFor(() => expect(line()).toMatchObject({ status: 401, reason }));
}

describe.each(CLASSES)('a %s token', (tokenClass) => {
  it.each(accepted)('D3-34: a token with %s is accepted', async (_name, header, claims) => {
    expect((await show(tokenClass, header(), claims())).status).toBe(200);
  });

  it.each(refused)(
    'D3-34 D3-32: a token with %s is a 401, and the log names the reason',
    async (_name, header, claims, reason) => {
      const { id, status } = await show(tokenClass, header(), claims());
      expect(status).toBe(401);
      await expectReason(id, reason);
    },
  );

  it('D3-34 D3-01: a token with an unknown kid is accepted only with the secret of its class', async () => {
    const { id, status } = await show(tokenClass, { kid: 'k' }, {});
    expect(status).toBe(200);
    expect(logged.find(({ correlation_id }) => correlation_id === id)).not.toHaveProperty('reason', expect.anything());
    for (const secret of ['x'.repeat(40), p.service.context.secrets.jwt.user.current]) {
      const forged = signed(p, apiClaims(p, { token_use: undefined }), { header: { kid: 'k' }, secret });
      const path = tokenClass === 'discover' ? '/v1/discovers/nodes' : '/v1/accounts';
      expect((await p.call('GET', path, { token: forged })).status).toBe(401);
    }
  });
});

describe('a token of the user class', () => {
  it.each([...strict, ...refused])(
    'D3-34 D3-24: a token with %s is a 401, and the log names the reason',
    async (_name, header, claims, reason) => {
      const { id, status } = await show('user', header(), claims());
      expect(status).toBe(401);
      await expectReason(id, reason);
    },
  );
});

it('D3-34: the reason of a rejected token is in the audit record too', async () => {
  const { id } = await show('legacy', {}, { aud: ['a', 'b'] });
  expect((await recordOf(p, id)).headers).toMatchObject({ ':reason': 'audience' });
});

it('D3-34: introspection of a foreign token shows its audience, scope and no null claim', async () => {
  const claims = { aud: [p.demo.node_id], scope: ['accounts:read', 'x'], nbf: now(30), jti: null };
  const shown = await postForm(
    p,
    '/v2/oauth/introspect',
    { token: token('legacy', { kid: 'k' }, claims) },
    basicOf(p.demo.client),
  );
  expect(shown.json).toMatchObject({ active: true, aud: p.demo.node_id, scope: 'accounts:read x', sub: 'a-service' });
  expect(shown.json).not.toHaveProperty('jti');
});
