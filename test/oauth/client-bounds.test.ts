import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ClientBounds, freerThanMaker, UNBOUND } from '../../src/access/administration/administration.ts';
import { isAllowedAddress } from '../../src/access/limits/client-guards.ts';
import { clientRecord } from '../support/oauth/client-record.ts';

const ADDRESSES = ['allow only addresses that your client may use'];
const CERTIFICATE = ['require the certificate of your client'];

function bounds(settings: Partial<ClientBounds>): ClientBounds {
  return { ...UNBOUND, ...settings };
}

const addresses: [maker: string[], target: string[], isWithin: boolean][] = [
  [[], ['0.0.0.0/0', '::/0'], true],
  [['198.51.100.7'], [], false],
  [['198.51.100.7'], ['198.51.100.7/31'], false],
  [['198.51.100.7'], ['198.51.100.7', '198.51.100.8'], false],
  [['198.51.100.0/25', '198.51.100.128/25'], ['198.51.100.0/24'], false],
  [['198.51.100.0/24', '203.0.113.1'], ['203.0.113.1', '198.51.100.1'], true],
  [['0.0.0.0/0'], ['::/0'], false],
  [['::/0'], ['::ffff:198.51.100.7'], false],
  [['198.51.100.0/24'], ['::FFFF:c633:6400/120'], true],
  [['198.51.100.0/24'], ['::ffff:c633:6400/119'], false],
  [['::ffff:0:0/96'], ['0.0.0.0/0'], true],
  [['::/0'], ['::ffff:0:0/95'], true],
  [['2001:db8::/32'], ['2001:DB8:0:0:1::/80', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'], true],
  [['64:ff9b::/96'], ['64:ff9b::198.51.100.7'], true],
];

describe('limits that a client may give to clients it creates', () => {
  it.each(addresses)(
    'D3-30: a client limited to %j can create one with the addresses %j: %s',
    (maker, target, isWithin) => {
      const wanting = freerThanMaker(bounds({ allowed_ips: maker }), bounds({ allowed_ips: target }));
      expect(wanting).toEqual(isWithin ? [] : ADDRESSES);
    },
  );

  const address = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV4().map((v4) => `::ffff:${v4}`),
    fc.constantFrom('10.0.0.1', '::ffff:10.0.0.2', '10.128.0.0', '::1', '2001:db8::1', '2001:db8:8000::'),
  );
  const network = fc
    .tuple(address, fc.option(fc.nat(128)))
    .map(([at, prefix]) => (prefix === null ? at : `${at}/${at.includes(':') ? prefix : prefix % 33}`));

  it('D3-30: an address accepted for the created client is always accepted for its creator', () => {
    const maker = fc.array(network, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(maker, fc.array(network, { maxLength: 2 }), fc.array(address), (outer, inner, callers) => {
        fc.pre(freerThanMaker(bounds({ allowed_ips: outer }), bounds({ allowed_ips: inner })).length === 0);
        const [makers, targets] = [clientRecord({ allowedIps: outer }), clientRecord({ allowedIps: inner })];
        for (const caller of [...callers, ...inner.map((entry) => entry.replace(/\/.*/, ''))]) {
          if (inner.length === 0 || isAllowedAddress(targets, caller)) {
            expect(isAllowedAddress(makers, caller)).toBe(true);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it('D3-30: any part of a network is within the network', () => {
    // Mapped addresses are no part of a network of IPv6.
    const unmapped = network.filter((entry) => !entry.startsWith('::ffff:'));
    fc.assert(
      fc.property(unmapped, fc.nat(128), (outer, longer) => {
        const [at = '', prefix] = outer.split('/');
        const most = at.includes(':') ? 128 : 32;
        const inner = `${at}/${Math.min(most, Number(prefix ?? most) + longer)}`;
        expect(freerThanMaker(bounds({ allowed_ips: [outer] }), bounds({ allowed_ips: [inner] }))).toEqual([]);
      }),
    );
  });

  const required = { require_certificate: true, cert_fingerprint: 'AB:CD' };

  it.each([
    [{}, {}, []],
    [{}, { require_certificate: true, cert_fingerprint: 'ab' }, []],
    [required, {}, CERTIFICATE],
    [required, { cert_fingerprint: 'abcd' }, CERTIFICATE],
    [required, { require_certificate: true }, CERTIFICATE],
    [required, { require_certificate: true, cert_fingerprint: 'ab:ce' }, CERTIFICATE],
    [required, { require_certificate: true, cert_fingerprint: 'abcd' }, []],
  ])(
    'D3-30: a client with the certificate settings %j creating one with %j gets these errors',
    (maker, target, wanting) => {
      expect(freerThanMaker(bounds(maker), bounds(target))).toEqual(wanting);
    },
  );

  it.each([
    ['requests_per_second', 'a limit on requests per second'],
    ['requests_per_minute', 'a limit on requests per minute'],
    ['requests_per_hour', 'a limit on requests per hour'],
    ['monthly_limit', 'a monthly limit'],
  ] as const)('D3-30: %s of the created client may not exceed that of its creator', (name, text) => {
    const wanting = (maker: number | null, target: number | null) =>
      freerThanMaker(bounds({ [name]: maker }), bounds({ [name]: target }));
    const more = [`set ${text} that does not exceed your client's`];
    expect([wanting(null, null), wanting(null, 1), wanting(5, 5), wanting(5, 4)]).toEqual([[], [], [], []]);
    expect([wanting(5, 6), wanting(5, null)]).toEqual([more, more]);
  });
});
