import { describe, expect, it } from 'vitest';
import { isAllowedAddress } from '../../src/access/limits/ip-allowlist.ts';
import { clientRecord } from '../support/oauth/client-record.ts';

const isAllowed = (allowedIps: string[], address: string) => isAllowedAddress(clientRecord({ allowedIps }), address);

/** The allowlist, the caller's address, and whether it passes. */
const cases: [allowed: string[], address: string, passes: boolean][] = [
  [['198.51.100.0/24'], '198.51.100.0', true],
  [['198.51.100.77/24'], '198.51.100.1', true],
  [['198.51.100.7/31'], '198.51.100.6', true],
  [['198.51.100.7/31'], '198.51.100.8', false],
  [['128.0.0.0/1'], '255.255.255.255', true],
  [['128.0.0.0/1'], '127.255.255.255', false],
  [['0.0.0.0/0'], '0.0.0.0', true],
  [['0.0.0.0/0'], '255.255.255.255', true],
  [['203.0.113.9/0'], '8.8.8.8', true],
  [['0.0.0.0/0'], '::1', false],
  [['::/0'], '::1', true],
  [['::/0'], 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', true],
  [['::/0'], '198.51.100.7', false],
  [['::/0'], '::ffff:198.51.100.7', false],
  [['2001:db8::1/128'], '2001:db8::1', true],
  [['2001:db8::1/128'], '2001:db8::2', false],
  [['2001:DB8::/64'], '2001:db8:0:0:ffff:ffff:ffff:ffff', true],
  [['2001:db8::/64'], '2001:db8:0:1::', false],
  [['2001:db8::/65'], '2001:db8::8000:0:0:0', false],
  [['198.51.100.7'], '::ffff:198.51.100.7', true],
  [['198.51.100.7'], '::FFFF:198.51.100.7', true],
  [['198.51.100.7'], '::ffff:c633:6407', true],
  [['198.51.100.7'], '0:0:0:0:0:ffff:c633:6407', true],
  [['198.51.100.0/24'], '::ffff:c633:64ff', true],
  [['::ffff:c633:6407'], '198.51.100.7', true],
  [['0:0:0:0:0:ffff:198.51.100.7'], '198.51.100.7', true],
  [['::ffff:c633:6407'], '198.51.100.8', false],
  [['::ffff:198.51.100.0/120'], '198.51.100.255', true],
  [['::ffff:198.51.100.0/128'], '198.51.100.1', false],
  [['::ffff:0:0/96'], '203.0.113.1', true],
  [['::ffff:0:0/96'], '2001:db8::1', false],
  [['::ffff:0:0/90'], '203.0.113.1', false],
  [['::198.51.100.7'], '198.51.100.7', false],
  [['64:ff9b::198.51.100.7'], '198.51.100.7', false],
  [['fe80::1'], 'fe80::1%eth0', true],
  [['fe80::1%eth1'], 'fe80::1%eth0', true],
  [['fe80::/10'], 'fe80::1%2', true],
  [['fe80::1'], 'fe80::2%eth0', false],
  [[' 198.51.100.7 '], '198.51.100.7', true],
];

/** Entries that are no address and no network, which a client's record may still have. */
const junk = [
  '',
  ' ',
  '/',
  '/24',
  'localhost',
  '198.51.100.7/',
  '198.51.100.7/33',
  '198.51.100.7/-1',
  '198.51.100.7/8.5',
  '198.51.100.7/1e1',
  '198.51.100.7/ 8',
  '198.51.100.7/0x8',
  '198.51.100.7/24/24',
  '198.51.100.7/255.255.255.0',
  '198.51.100.7:443',
  '198.51.100',
  '198.51.100.*',
  '0198.051.100.007',
  '198.51.100.7,198.51.100.8',
  '198.51.100.1-198.51.100.9',
  '2001:db8::/129',
  '2001:db8::/-0',
  '[2001:db8::1]',
  ':::',
  '%eth0',
];

describe('the allowlist of a client', () => {
  it.each(cases)('D3-13 5.3-03: %j lets %s pass: %s', (allowed, address, passes) => {
    expect(isAllowed(allowed, address)).toBe(passes);
  });

  it.each(junk)('D3-13: the entry %j lets nobody pass, and keeps nobody else out', (entry) => {
    for (const address of ['198.51.100.7', '2001:db8::1', '127.0.0.1', '::1']) {
      expect(isAllowed([entry], address)).toBe(false);
      expect(isAllowed([entry, address, entry], address)).toBe(true);
    }
  });

  it.each(['', 'unknown', '198.51.100.7:80', '198.51.100.7, 198.51.100.7', '[::1]', '_hidden'])(
    'D3-13: the caller %j is at no address that is allowed',
    (address) => {
      expect(isAllowed(['0.0.0.0/0', '::/0'], address)).toBe(false);
    },
  );
});
