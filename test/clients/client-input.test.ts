import { describe, expect, it } from 'vitest';
import { camelInput } from '../../src/api/graphql/kit/builder.ts';
import { inputIssues } from '../../src/api/graphql/kit/resolvers.ts';
import { clientInput, rotationInput } from '../../src/features/clients/client.input.ts';

const LEAST = { name: 'Trader', grantTypes: ['client_credentials'], scopes: [] };

function pathsOf(given: object, schema: typeof clientInput | typeof rotationInput = clientInput): string[] {
  const { error } = camelInput<typeof schema>(schema).safeParse(given);
  const issues = error ? inputIssues(error) : [];
  expect(issues.every(({ message }) => message !== '')).toBe(true);
  return issues.map(({ path }) => path.join('.'));
}

describe('the input of a client', () => {
  it('2.2-01, D3-08: absent members take their defaults: tokens of an hour, no limits', () => {
    expect(camelInput(clientInput).parse(LEAST)).toEqual({
      name: 'Trader',
      grant_types: ['client_credentials'],
      scopes: [],
      token_expiry: { enabled: true, duration: 3_600 },
      allowed_ips: [],
      require_certificate: false,
      rate_limit: {},
      refresh_reuse_detection: false,
      is_console: false,
    });
  });

  it('D3-08: null and empty members count as absent', () => {
    const nothing = { tokenExpiry: null, requireCertificate: null, monthlyLimit: null, refreshReuseDetection: null };
    const empty = { allowedIps: [], rateLimit: { requestsPerSecond: null }, certFingerprint: null };
    expect(camelInput(clientInput).parse({ ...LEAST, ...nothing, ...empty })).toEqual(
      camelInput(clientInput).parse(LEAST),
    );
  });

  it('DG-03: the members are those of REST in camelCase, and duplicates of grants and scopes are dropped', () => {
    const given = {
      name: 'Trader',
      grantTypes: ['password', 'password'],
      scopes: ['accounts:read', 'accounts:read', 'wallets:read'],
      tokenExpiry: { enabled: false, duration: 60 },
      allowedIps: ['10.0.0.0/8'],
      requireCertificate: true,
      certFingerprint: `AB:cd${'0'.repeat(36)}`,
      rateLimit: { requestsPerSecond: 1, requestsPerMinute: 2, requestsPerHour: 3 },
      monthlyLimit: 4,
      refreshReuseDetection: true,
    };
    expect(camelInput(clientInput).parse(given)).toEqual({
      name: 'Trader',
      grant_types: ['password'],
      scopes: ['accounts:read', 'wallets:read'],
      token_expiry: { enabled: false, duration: 60 },
      allowed_ips: ['10.0.0.0/8'],
      require_certificate: true,
      cert_fingerprint: `AB:cd${'0'.repeat(36)}`,
      rate_limit: { requests_per_second: 1, requests_per_minute: 2, requests_per_hour: 3 },
      monthly_limit: 4,
      refresh_reuse_detection: true,
      is_console: false,
    });
  });

  it.each([
    ['an empty name', { name: '' }, ['name']],
    ['a blank name', { name: ' \t' }, ['name']],
    ['a name of 256 characters', { name: 'x'.repeat(256) }, ['name']],
    ['U+0000 in the name', { name: 'a\0' }, ['name']],
    ['no grant', { grantTypes: [] }, ['grantTypes']],
    ['a grant that does not exist', { grantTypes: ['implicit'] }, ['grantTypes.0']],
    ['a scope with a space', { scopes: ['a', 'b c'] }, ['scopes.1']],
    ['an empty scope', { scopes: [''] }, ['scopes.0']],
    ['a scope with a quote', { scopes: ['a"b'] }, ['scopes.0']],
    ['a scope beyond ASCII', { scopes: ['größe'] }, ['scopes.0']],
    ['a duration of zero', { tokenExpiry: { enabled: true, duration: 0 } }, ['tokenExpiry.duration']],
    ['a fraction of a second', { tokenExpiry: { enabled: true, duration: 1.5 } }, ['tokenExpiry.duration']],
    ['no duration', { tokenExpiry: { enabled: true } }, ['tokenExpiry.duration']],
    ['a limit of zero per second', { rateLimit: { requestsPerSecond: 0 } }, ['rateLimit.requestsPerSecond']],
    ['a negative limit per minute', { rateLimit: { requestsPerMinute: -1 } }, ['rateLimit.requestsPerMinute']],
    ['a limit over 32 bits', { rateLimit: { requestsPerHour: 2 ** 31 } }, ['rateLimit.requestsPerHour']],
    ['a quota of zero', { monthlyLimit: 0 }, ['monthlyLimit']],
    ['a fingerprint that is not hexadecimal', { certFingerprint: 'xyz' }, ['certFingerprint']],
    ['half a byte of a fingerprint', { certFingerprint: 'a'.repeat(41) }, ['certFingerprint']],
    ['two invalid members', { name: '', monthlyLimit: 0 }, ['name', 'monthlyLimit']],
  ])('DG-03, DG-07: %s is an issue with its path', (_name, given, paths) => {
    expect(pathsOf({ ...LEAST, ...given })).toEqual(paths);
  });

  const DIGEST_BYTES = [20, 32, 48, 64];

  it.each(DIGEST_BYTES)('2.2-01: accepts a fingerprint of %i bytes, in either letter case', (bytes) => {
    for (const byte of ['ab', 'AB:', 'Ab:', 'aB'])
      expect(pathsOf({ ...LEAST, certFingerprint: byte.repeat(bytes).replace(/:$/, '') })).toEqual([]);
  });

  it('2.2-01: accepts an empty fingerprint, and rejects one that is not a SHA-1, SHA-256, SHA-384 or SHA-512 digest', () => {
    for (let bytes = 0; bytes <= 130; bytes += 1) {
      const isDigest = bytes === 0 || DIGEST_BYTES.includes(bytes);
      for (const certFingerprint of ['ab'.repeat(bytes), 'AB:'.repeat(bytes).slice(0, -1)])
        expect([bytes, pathsOf({ ...LEAST, certFingerprint })]).toEqual([bytes, isDigest ? [] : ['certFingerprint']]);
    }
  });

  const SHA256 = 'ab'.repeat(32);
  const COLONS = 'AB:'.repeat(32).slice(0, -1);

  it.each([
    ['from openssl x509', `sha256 Fingerprint=${COLONS}`],
    ['from older openssl', `SHA256 Fingerprint=${COLONS}`],
    ['with the name of the digest', `SHA256:${SHA256}`],
    ['from OpenSSH', 'SHA256:uNiVztksCsDhcc0u9e8BrrJXVGDvUsUZsWZ6iLzNCFo'],
    ['in base64', 'uNiVztksCsDhcc0u9e8BrrJXVGDvUsUZsWZ6iLzNCFo='],
    ['of MD5', 'AB:'.repeat(16).slice(0, -1)],
    ['with spaces, from Windows', 'ab '.repeat(20).trimEnd()],
    ['after an invisible mark, from Windows', `\u200e${'ab'.repeat(20)}`],
    ['with hyphens', 'ab-'.repeat(32).slice(0, -1)],
    ['with 0x', `0x${SHA256}`],
    ['with a colon at the end', `${COLONS}:`],
    ['with two colons', COLONS.replace(':', '::')],
    ['with a line end', `${SHA256}\n`],
    ['of two certificates', `${SHA256},${SHA256}`],
  ])('2.2-01: rejects a fingerprint %s and says what to write', (_name, certFingerprint) => {
    const { error } = clientInput.safeParse({
      name: 'x',
      grant_types: ['password'],
      scopes: [],
      cert_fingerprint: certFingerprint,
    });
    expect(error?.issues.map(({ message }) => message)).toEqual([expect.stringContaining('64 (SHA-256)')]);
  });

  it.each([
    '192.0.2.1',
    '192.0.2.0/24',
    '0.0.0.0/0',
    '192.0.2.1/32',
    '2001:db8::1',
    '2001:db8::/32',
    '::/0',
    '::ffff:192.0.2.1',
    '::ffff:192.0.2.0/120',
  ])('2.2-01: %s is a valid address or network', (entry) => {
    expect(pathsOf({ ...LEAST, allowedIps: [entry] })).toEqual([]);
  });

  it.each([
    '',
    'localhost',
    '192.0.2',
    '192.0.2.256',
    '192.0.2.0/33',
    '192.0.2.0/',
    '192.0.2.0/-1',
    '192.0.2.0/024',
    '192.0.2.0/24/24',
    ' 192.0.2.1',
    '2001:db8::/129',
    '2001:db8::g',
    'fe80::1%eth0',
    '*',
  ])('2.2-01: %j is not a valid address or network', (entry) => {
    expect(pathsOf({ ...LEAST, allowedIps: ['192.0.2.1', entry] })).toEqual(['allowedIps.1']);
  });
});

describe('the overlap of a rotation', () => {
  it('D3-06: is zero by default', () => {
    expect(camelInput(rotationInput).parse({ overlapSeconds: undefined })).toEqual({ overlap_seconds: 0 });
    expect(camelInput(rotationInput).parse({ overlapSeconds: null })).toEqual({ overlap_seconds: 0 });
  });

  it.each([
    [-1, ['overlapSeconds']],
    [0, []],
    [2_592_000, []],
    [2_592_001, ['overlapSeconds']],
  ])('D3-06: %i seconds gives the issues %j', (overlapSeconds, paths) => {
    expect(pathsOf({ overlapSeconds }, rotationInput)).toEqual(paths);
  });
});
