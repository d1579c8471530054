import { describe, expect, it } from 'vitest';
import { isAllowedAddress } from '../../src/access/limits/client-guards.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { clientRecord } from '../support/oauth/client-record.ts';
import { addClient } from '../support/oauth/clients.ts';

const p = usePortcullis();

function token(client: object, headers: Record<string, string>, grant: object = {}): Promise<Answer> {
  const json = { grant_type: 'client_credentials', ...client, ...grant };
  return p.call('POST', '/v2/oauth/token', { json, headers });
}

const STORED = 'AB:CD:EF:01:23:45:67:89';

describe('the certificate guard', () => {
  const SPELLINGS = [STORED, 'ab:cd:ef:01:23:45:67:89', 'abcdef0123456789', ` ${STORED} `];
  const OTHERS = ['AB:CD:EF:01:23:45:67:88', `${STORED}:00`, 'AB:CD', `${STORED}, ${STORED}`, undefined, '', ':'];

  async function expectStatus(stored: string | null, forwarded: string | undefined, status: number): Promise<void> {
    const client = await addClient(p, { require_certificate: true, cert_fingerprint: stored });
    const answer = await token(client, forwarded === undefined ? {} : { 'ssl-client-fingerprint': forwarded });
    expect([forwarded, answer.status]).toEqual([forwarded, status]);
    if (status === 403) expect(answer.text).toBe(envelope('mtls_required'));
  }

  it('5.3-02 D3-14 7.2-05: accepts the stored fingerprint in any spelling, and no other', async () => {
    for (const forwarded of SPELLINGS) await expectStatus(STORED, forwarded, 200);
    await expectStatus('abcdef0123456789', STORED, 200);
    for (const forwarded of OTHERS) await expectStatus(STORED, forwarded, 403);
  });

  it.each([null, '', ':'])(
    '5.3-02 D3-14 7.2-05: rejects every certificate when the stored fingerprint is %j',
    async (stored) => {
      for (const forwarded of [STORED, undefined, '', ':']) await expectStatus(stored, forwarded, 403);
    },
  );

  it('5.3-02: a client that needs no certificate is accepted with any or none', async () => {
    const client = await addClient(p, { require_certificate: false, cert_fingerprint: STORED });
    expect((await token(client, {})).status).toBe(200);
    expect((await token(client, { 'ssl-client-fingerprint': 'other' })).status).toBe(200);
  });
});

describe('the address guard', () => {
  it.each([
    [[], '198.51.100.7', true],
    [['203.0.113.1', '198.51.100.0/24'], '198.51.100.255', true],
    [['198.51.100.7'], '198.51.100.8', false],
    [['2001:db8::/32'], '2001:0DB8:0:0::1', true],
    [['not an address'], '198.51.100.7', false],
    // An entry that is no address: who has come is unknown.
    [['0.0.0.0/0', '::/0'], 'unknown', false],
  ])('5.3-03 7.2-04: the allowlist %j accepts %s: %s', async (allowed, address, passes) => {
    const client = await addClient(p, { allowed_ips: allowed });
    const answer = await token(client, { 'x-forwarded-for': address });
    expect(answer.status).toBe(passes ? 200 : 403);
    if (!passes) expect(answer.text).toBe(envelope('ip_not_allowed'));
  });
});

describe('the guards of a client', () => {
  it('5.3-02 5.3-03: the guards of a client apply to every grant', async () => {
    const client = await addClient(p, { allowed_ips: ['198.51.100.7'] });
    const grants = [
      {},
      { grant_type: 'password', ...p.demo.supervisor },
      { grant_type: 'refresh_token', refresh_token: 'x' },
    ];
    for (const grant of grants) expect((await token(client, {}, grant)).text).toBe(envelope('ip_not_allowed'));
  });

  it('5.3-02 5.3-03 1-09: the guards of a client apply to every request with its token, after the permission check', async () => {
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

  it('5.3-03: the guards of a client do not apply to a login token issued through it', async () => {
    const client = await addClient(p, { allowed_ips: ['198.51.100.7'] });
    const grant = { grant_type: 'password', ...p.demo.supervisor };
    const { access_token } = (await token(client, { 'x-forwarded-for': '198.51.100.7' }, grant)).json;
    expect((await p.call('GET', '/v1/accounts', { token: access_token })).status).toBe(200);
  });
});

const isAllowed = (allowedIps: string[], address: string) => isAllowedAddress(clientRecord({ allowedIps }), address);
const words = (text: string) => text.split(' ').filter((word) => word !== '');

/** An entry of an allowlist, the addresses that it lets pass, and some that it does not. */
const cases: Record<string, [passing: string, others: string]> = {
  '198.51.100.0/24': ['198.51.100.0 ::ffff:c633:64ff', ''],
  '198.51.100.77/24': ['198.51.100.1', ''],
  '198.51.100.7/31': ['198.51.100.6', '198.51.100.8'],
  '128.0.0.0/1': ['255.255.255.255', '127.255.255.255'],
  '0.0.0.0/0': ['0.0.0.0 255.255.255.255', '::1'],
  '203.0.113.9/0': ['8.8.8.8', ''],
  '::/0': ['::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '198.51.100.7 ::ffff:198.51.100.7'],
  '2001:db8::1/128': ['2001:db8::1', '2001:db8::2'],
  '2001:DB8::/64': ['2001:db8:0:0:ffff:ffff:ffff:ffff', ''],
  '2001:db8::/64': ['', '2001:db8:0:1::'],
  '2001:db8::/65': ['', '2001:db8::8000:0:0:0'],
  '198.51.100.7': ['::ffff:198.51.100.7 ::FFFF:198.51.100.7 ::ffff:c633:6407 0:0:0:0:0:ffff:c633:6407', ''],
  '::ffff:c633:6407': ['198.51.100.7', '198.51.100.8'],
  '0:0:0:0:0:ffff:198.51.100.7': ['198.51.100.7', ''],
  '::ffff:198.51.100.0/120': ['198.51.100.255', ''],
  '::ffff:198.51.100.0/128': ['', '198.51.100.1'],
  '::ffff:0:0/96': ['203.0.113.1', '2001:db8::1'],
  '::ffff:0:0/90': ['', '203.0.113.1'],
  '::198.51.100.7': ['', '198.51.100.7'],
  '64:ff9b::198.51.100.7': ['', '198.51.100.7'],
  'fe80::1': ['fe80::1%eth0', 'fe80::2%eth0'],
  'fe80::1%eth1': ['fe80::1%eth0', ''],
  'fe80::/10': ['fe80::1%2', ''],
  ' 198.51.100.7 ': ['198.51.100.7', ''],
};

/** Entries that are no address and no network, which a client's record may still have. */
const junk = [
  ...['', ' ', '/', '/24', 'localhost', ':::', '%eth0', '[2001:db8::1]', '2001:db8::/129', '2001:db8::/-0'],
  ...['/', '/33', '/-1', '/8.5', '/1e1', '/ 8', '/0x8', '/24/24', '/255.255.255.0'].map((end) => `198.51.100.7${end}`),
  ...['198.51.100.7:443', '198.51.100', '198.51.100.*', '0198.051.100.007', '198.51.100.7,198.51.100.8'],
  '198.51.100.1-198.51.100.9',
];

describe('the allowlist of a client', () => {
  it.each(Object.entries(cases))(
    'D3-13 5.3-03: the entry %j accepts and rejects the addresses %j',
    (entry, [passing, others]) => {
      for (const address of words(passing)) expect([address, isAllowed([entry], address)]).toEqual([address, true]);
      for (const address of words(others)) expect([address, isAllowed([entry], address)]).toEqual([address, false]);
    },
  );

  it.each(junk)('D3-13: the invalid entry %j matches no address, and the other entries still apply', (entry) => {
    for (const address of ['198.51.100.7', '2001:db8::1', '127.0.0.1', '::1']) {
      expect(isAllowed([entry], address)).toBe(false);
      expect(isAllowed([entry, address, entry], address)).toBe(true);
    }
  });

  it.each(['', 'unknown', '198.51.100.7:80', '198.51.100.7, 198.51.100.7', '[::1]', '_hidden'])(
    'D3-13: the malformed caller address %j matches no entry',
    (address) => {
      expect(isAllowed(['0.0.0.0/0', '::/0'], address)).toBe(false);
    },
  );
});
