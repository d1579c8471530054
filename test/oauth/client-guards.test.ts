import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis();
});
afterAll(() => p[Symbol.asyncDispose]());

function token(client: object, headers: Record<string, string>, grant: object = {}): Promise<Answer> {
  const json = { grant_type: 'client_credentials', ...client, ...grant };
  return p.call('POST', '/v2/oauth/token', { json, headers });
}

const STORED = 'AB:CD:EF:01:23:45:67:89';

/** The stored fingerprint, the forwarded one, and whether they are one. */
const certificates: [string | null, string | undefined, boolean][] = [
  [STORED, STORED, true],
  [STORED, 'ab:cd:ef:01:23:45:67:89', true],
  [STORED, 'abcdef0123456789', true],
  ['abcdef0123456789', STORED, true],
  [STORED, ` ${STORED} `, true],
  [STORED, undefined, false],
  [STORED, '', false],
  [STORED, ':', false],
  [STORED, 'AB:CD:EF:01:23:45:67:88', false],
  [STORED, `${STORED}:00`, false],
  [STORED, 'AB:CD', false],
  [STORED, `${STORED}, ${STORED}`, false],
  [null, STORED, false],
  [null, undefined, false],
  [null, '', false],
  ['', '', false],
  [':', ':', false],
];

describe('the certificate guard', () => {
  it.each(certificates)('5.3-02 D3-14 7.2-05: stored %j, forwarded %j: %s', async (stored, forwarded, passes) => {
    const client = await addClient(p, { require_certificate: true, cert_fingerprint: stored });
    const answer = await token(client, forwarded === undefined ? {} : { 'ssl-client-fingerprint': forwarded });
    expect(answer.status).toBe(passes ? 200 : 403);
    if (!passes) expect(answer.text).toBe(envelope('mtls_required'));
  });

  it('5.3-02: a client that needs none passes with any or none', async () => {
    const client = await addClient(p, { require_certificate: false, cert_fingerprint: STORED });
    expect((await token(client, {})).status).toBe(200);
    expect((await token(client, { 'ssl-client-fingerprint': 'other' })).status).toBe(200);
  });
});

/** The allowlist, the caller's address, and whether it passes. */
const addresses: [string[], string, boolean][] = [
  [[], '198.51.100.7', true],
  [['198.51.100.7'], '198.51.100.7', true],
  [['198.51.100.7'], '198.51.100.8', false],
  [['203.0.113.1', '198.51.100.7'], '198.51.100.7', true],
  [['198.51.100.0/24'], '198.51.100.255', true],
  [['198.51.100.0/24'], '198.51.101.0', false],
  [['198.51.100.7/32'], '198.51.100.7', true],
  [['0.0.0.0/0'], '203.0.113.9', true],
  [['2001:db8::1'], '2001:db8::1', true],
  [['2001:db8::1'], '2001:0DB8:0:0::1', true],
  [['2001:db8::/32'], '2001:db8:ffff::9', true],
  [['2001:db8::/32'], '2001:db9::1', false],
  [['::/0'], '2001:db9::1', true],
  [['0.0.0.0/0'], '2001:db9::1', false],
  [['198.51.100.7'], '::ffff:198.51.100.7', true],
  [['::ffff:198.51.100.7'], '198.51.100.7', true],
  [['::ffff:198.51.100.0/120'], '198.51.100.99', true],
  [['::ffff:198.51.100.0/120'], '198.51.101.99', false],
  [['not an address'], '198.51.100.7', false],
  [['198.51.100.7'], '127.0.0.1', false],
  // An entry that is no address: who has come is unknown.
  [['0.0.0.0/0', '::/0'], 'unknown', false],
];

describe('the address guard', () => {
  it.each(addresses)('5.3-03 7.2-04: %j lets %s pass: %s', async (allowed, address, passes) => {
    const client = await addClient(p, { allowed_ips: allowed });
    const answer = await token(client, { 'x-forwarded-for': address });
    expect(answer.status).toBe(passes ? 200 : 403);
    if (!passes) expect(answer.text).toBe(envelope('ip_not_allowed'));
  });
});

describe('the guards of a client', () => {
  it('5.3-02 5.3-03: hold on every grant', async () => {
    const client = await addClient(p, { allowed_ips: ['198.51.100.7'] });
    const grants = [
      {},
      { grant_type: 'password', ...p.demo.supervisor },
      { grant_type: 'refresh_token', refresh_token: 'x' },
    ];
    for (const grant of grants) expect((await token(client, {}, grant)).text).toBe(envelope('ip_not_allowed'));
  });

  it('5.3-02 5.3-03 1-09: hold on every request with its API token, after the permission', async () => {
    const client = await addClient(p, {
      require_certificate: true,
      cert_fingerprint: 'ab',
      allowed_ips: ['198.51.100.7'],
    });
    const good = { 'ssl-client-fingerprint': 'ab', 'x-forwarded-for': '198.51.100.7' };
    const { access_token } = (await token(client, good)).json;
    const list = (headers: Record<string, string>) => p.call('GET', '/v1/accounts', { token: access_token, headers });
    expect((await list(good)).status).toBe(200);
    expect((await list({})).text).toBe(envelope('mtls_required'));
    expect((await list({ 'ssl-client-fingerprint': 'ab' })).text).toBe(envelope('ip_not_allowed'));
    const powerless = await p.call('POST', '/v2/users/migrate/with-wallet', { token: access_token, json: {} });
    expect(powerless.text).toBe(envelope('forbidden'));
  });

  it('5.3-03: do not hold for a login through it, once it is issued', async () => {
    const client = await addClient(p, { allowed_ips: ['198.51.100.7'] });
    const grant = { grant_type: 'password', ...p.demo.supervisor };
    const { access_token } = (await token(client, { 'x-forwarded-for': '198.51.100.7' }, grant)).json;
    expect((await p.call('GET', '/v1/accounts', { token: access_token })).status).toBe(200);
  });
});
