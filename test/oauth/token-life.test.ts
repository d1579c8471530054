import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startEmbedded } from '../support/harness.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { failSessionReads } from '../support/oauth/session-reads.ts';

const clock: { stoppedAtMs: number | undefined } = { stoppedAtMs: undefined };
const p = beforeTests(() => startEmbedded({ overrides: { nowMs: () => clock.stoppedAtMs ?? Date.now() } }));
afterEach(() => {
  clock.stoppedAtMs = undefined;
  vi.restoreAllMocks();
});

async function statusOf(token: string): Promise<number> {
  return (await p.call('GET', '/v1/accounts', { token })).status;
}

async function expectUnauthorized(token: string): Promise<void> {
  const answer = await p.call('GET', '/v1/accounts', { token });
  expect([answer.status, answer.text]).toEqual([401, envelope('unauthorized')]);
}

describe('the expiry of a token', () => {
  it('2.1-06: a token is rejected from its exp on, although its signature was verified before', async () => {
    const token = await p.clientToken();
    expect(await statusOf(token)).toBe(200);
    const { exp = 0 } = decodeJwt(token);
    clock.stoppedAtMs = exp * 1000 - 1;
    expect(await statusOf(token)).toBe(200);
    clock.stoppedAtMs = exp * 1000;
    await expectUnauthorized(token);
  });
});

describe('the scope for an endpoint', () => {
  it('5.1-07 D2-12: the scope must contain the permission as a whole word', async () => {
    const list = (scope: string) => p.call('GET', '/v1/accounts', { token: signed(p, apiClaims(p, { scope })) });
    for (const scope of ['', 'wallets:read', 'accounts', 'accounts:readx', 'xaccounts:read', 'ACCOUNTS:READ']) {
      const answer = await list(scope);
      expect([scope, answer.status, answer.text]).toEqual([scope, 403, envelope('forbidden')]);
    }
    for (const scope of ['accounts:read', 'wallets:read accounts:read', '  accounts:read  ']) {
      expect([scope, (await list(scope)).status]).toEqual([scope, 200]);
    }
  });
});

describe('the session of a login token', () => {
  it('5.1-05: the session must belong to the sub and aud of the token', async () => {
    const token = await p.loginToken();
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    expect(await statusOf(signed(p, claims))).toBe(200);
    await expectUnauthorized(signed(p, { ...claims, sub: randomUUID() }));
    const elsewhere = { aud: p.demo.other_node.node_id, client_id: p.demo.other_node.client.client_id };
    await expectUnauthorized(signed(p, { ...claims, ...elsewhere }));
  });

  it('5.1-05 5.1-06: a login whose session cannot be read gets 503 with Retry-After; cached sessions and API tokens work', async () => {
    const [login, api] = await Promise.all([p.loginToken(), p.clientToken()]);
    failSessionReads(p);
    const answer = await p.call('GET', '/v1/accounts', { token: login });
    expect([answer.status, answer.text]).toEqual([503, envelope('service_unavailable')]);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(await statusOf(api)).toBe(200);
    vi.restoreAllMocks();
    expect(await statusOf(login)).toBe(200);
    failSessionReads(p);
    expect(await statusOf(login)).toBe(200);
  });
});
