import { describe, expect, it } from 'vitest';
import { gatewayChain } from '../../src/gateway/chain.ts';
import { PathTable, Services } from '../../src/gateway/routing.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { usePortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { basic } from '../support/webhook/fixture.ts';

const p = usePortcullis();

describe('the gateway chain', () => {
  it('1-01: has its stages in the documented order, with permission after revocation', () => {
    const { authenticator } = p.service.context;
    const chain = gatewayChain({
      aliases: new Map(),
      table: new PathTable([]),
      services: new Services({ services: {} }, { of: () => undefined }),
      tokens: authenticator,
      guards: { check: async () => ({ headers: [] }) },
      local: { routes: new PathTable([]), handle: () => undefined },
      remote: { forward: () => undefined },
      onEnd: () => undefined,
      nowMs: () => 0,
    });
    expect(chain.map((stage) => stage.name)).toEqual([
      'clock',
      'correlation',
      'capture',
      'target',
      'endpoint',
      'visibility',
      'signature',
      'claims',
      'revocation',
      'permission',
      'upstream',
      'proxy',
    ]);
  });
});

interface Wrong {
  correlation?: boolean;
  target?: boolean;
  path?: boolean;
  token?: 'none' | 'unsigned' | 'expired' | 'revoked' | 'powerless' | 'guarded';
  query?: boolean;
}

const all: Wrong = { correlation: true, target: true, path: true, token: 'none', query: true };

/** Each row leaves the earlier faults out and keeps every later one. */
const refusals: [string, Wrong, number, string][] = [
  ['the correlation id', all, 400, 'invalid_request'],
  ['the target service', { ...all, correlation: false }, 404, 'not_found'],
  ['the endpoint', { path: true, token: 'none', query: true }, 404, 'not_found'],
  ['the missing token', { token: 'none', query: true }, 401, 'unauthorized'],
  ['the signature', { token: 'unsigned', query: true }, 401, 'unauthorized'],
  ['the claims', { token: 'expired', query: true }, 401, 'unauthorized'],
  ['the revocation', { token: 'revoked', query: true }, 401, 'unauthorized'],
  ['the permission', { token: 'powerless', query: true }, 403, 'forbidden'],
  ['the guards', { token: 'guarded', query: true }, 403, 'mtls_required'],
  ['the input', { query: true }, 400, 'invalid_request'],
  ['nothing', {}, 200, ''],
];

async function tokenWith(fault: Wrong['token']): Promise<string | undefined> {
  const powerless = { scope: '', exp: Math.floor(Date.now() / 1000) + 60 };
  switch (fault) {
    case 'none':
      return undefined;
    case 'unsigned':
      return signed(p, apiClaims(p, { exp: 1, scope: '' }), { secret: 'not the secret of any class of tokens' });
    case 'expired':
      return signed(p, apiClaims(p, { exp: 1, scope: '', token_use: 'login' }));
    case 'revoked':
      return signed(p, apiClaims(p, { ...powerless, token_use: 'login', sid: 'gone' }));
    case 'powerless':
    case 'guarded': {
      const client = await addClient(p, { require_certificate: true });
      const claims = { sub: client.client_id, client_id: client.client_id };
      return signed(p, apiClaims(p, fault === 'powerless' ? { ...claims, ...powerless } : claims));
    }
    case undefined:
      return p.clientToken();
    default:
      return fault satisfies never;
  }
}

describe('the order of rejections', () => {
  it.each(refusals)('D2-02 1-09: %s is checked before everything after it', async (_name, wrong, status, message) => {
    const token = await tokenWith(wrong.token);
    const answer = await p.call('GET', `/v1/accounts${wrong.path ? '/' : ''}${wrong.query ? '?page=0' : ''}`, {
      headers: {
        ...(wrong.correlation ? { 'x-correlation-id': 'x'.repeat(1025) } : {}),
        'x-target-server': wrong.target ? 'nobody' : 'accounts',
      },
      ...(token === undefined ? {} : { token }),
    });
    expect(answer.status).toBe(status);
    if (status !== 200) expect(answer.json.message).toBe(message);
  });

  it('D2-02: Basic is checked before the length of the body, and the length before its content', async () => {
    const authorization = basic(p.webhook.username, p.webhook.password);
    const long = Buffer.alloc(300 * 1024, '{');
    const json = { 'content-type': 'application/json' };
    const stranger = await p.call('POST', '/v2/webhooks/custodial', { headers: json, body: long });
    const tooLong = await p.call('POST', '/v2/webhooks/custodial', { headers: { ...json, authorization }, body: long });
    const malformed = await p.call('POST', '/v2/webhooks/custodial', {
      headers: { ...json, authorization },
      body: '{',
    });
    expect([stranger.status, tooLong.status, malformed.status]).toEqual([401, 400, 400]);
    expect(stranger.text).toBe(envelope('unauthorized'));
    expect(tooLong.json.errors).toEqual([{ path: '', message: 'must be at most 262144 bytes' }]);
    expect(malformed.json.errors).toEqual([{ path: '', message: 'must be JSON, but is malformed at line 1 column 2' }]);
  });
});
