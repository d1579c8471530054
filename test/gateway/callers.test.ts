import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { callerAddress } from '../../src/lib/ip-address.ts';
import { usePortcullis } from '../support/harness.ts';

const V4 = '192.0.2.1';
const V6 = '2001:db8:1:2::/64';

describe('the caller key of an address', () => {
  it.each(
    Object.entries({
      [V4]: `${V4} ::ffff:192.0.2.1 ::FFFF:192.0.2.1 ::ffff:c000:201 ::ffff:C000:0201 0:0:0:0:0:ffff:192.0.2.1
        0000:0000:0000:0000:0000:FFFF:C000:0201 ::0:ffff:192.0.2.1 ::ffff:192.0.2.1%eth0`,
      [V6]: `2001:db8:1:2:3:4:5:6 2001:db8:1:2::1 2001:DB8:1:2::1 2001:0db8:0001:0002::ffff 2001:db8:1:2::192.0.2.1
        2001:db8:1:2::ffff:192.0.2.1 2001:db8:1:2::1%eth0`,
      '2001:db8:0:0::/64': '2001:db8::1 2001:db8::2:3:4:5',
      '2001:db8:0:2::/64': '2001:db8::2:3:4:0.4.0.5',
      '0:0:0:0::/64': '::1 :: ::ffff:0:192.0.2.1',
      '1:0:0:0::/64': '1::',
      '64:ff9b:0:0::/64': '64:ff9b::192.0.2.1',
      'fe80:0:0:0::/64': 'fe80::1%eth0 fe80::2%2',
      '': '',
    }),
  )('D2-24 D3-18: is %j for the addresses %s', (caller, addresses) => {
    for (const address of addresses.split(/\s+/)) expect([address, callerAddress(address)]).toEqual([address, caller]);
  });

  const group = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.nat(0xffff));
  const groups = fc.array(group, { minLength: 8, maxLength: 8 });
  const style = fc.record({ upper: fc.boolean(), pad: fc.boolean(), dotted: fc.boolean(), zone: fc.boolean() });

  it('D2-24 D3-18: is the same for every spelling of an address, and for the rest of its IPv6 /64', () => {
    fc.assert(
      fc.property(groups, groups, style, style, fc.nat(), (one, other, first, second, at) => {
        const isMapped = one.slice(0, 5).every((part) => part === 0) && one[5] === 0xffff;
        const caller = callerAddress(spelled(one, first, at));
        expect(callerAddress(spelled(one, second, at + 1))).toBe(caller);
        if (isMapped) return;
        const neighbour = [...one.slice(0, 4), 1, ...other.slice(5)];
        expect(callerAddress(spelled(neighbour, second, at))).toBe(caller);
        const stranger = one.map((part, index) => (index === at % 4 ? part ^ 1 : part));
        expect(callerAddress(spelled(stranger, second, at))).not.toBe(caller);
      }),
    );
  });

  it('D2-24 D3-18: is the IPv4 address for every spelling of an IPv4-mapped address, and for no other', () => {
    fc.assert(
      fc.property(fc.ipV4(), style, fc.nat(), fc.ipV4(), (address, how, at, other) => {
        expect(callerAddress(spelled(mapped(address), how, at))).toBe(address);
        expect(callerAddress(spelled(mapped(other), how, at)) === address).toBe(other === address);
      }),
    );
  });
});

function mapped(address: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  return [0, 0, 0, 0, 0, 0xffff, a * 256 + b, c * 256 + d];
}

interface Style {
  upper: boolean;
  pad: boolean;
  dotted: boolean;
  zone: boolean;
}

/** Returns an IPv6 address in one of its spellings: `at` chooses which zeros are left out. */
function spelled(groups: number[], { upper, pad, dotted, zone }: Style, at: number): string {
  const parts = groups.map((part) => part.toString(16).padStart(pad ? 4 : 1, '0'));
  const [high = 0, low = 0] = groups.slice(6);
  if (dotted) parts.splice(6, 2, [high >> 8, high & 255, low >> 8, low & 255].join('.'));
  const runs = groups.flatMap((part, index) => (part === 0 && index < parts.length - 1 ? [index] : []));
  const from = runs.length === 0 ? -1 : (runs[at % (runs.length + 1)] ?? -1);
  let length = 0;
  while (from >= 0 && from + length < 6 && groups[from + length] === 0) length += 1;
  const text =
    length === 0 ? parts.join(':') : `${parts.slice(0, from).join(':')}::${parts.slice(from + length).join(':')}`;
  return `${upper ? text.toUpperCase() : text}${zone ? '%eth0' : ''}`;
}

describe('counts by caller', () => {
  const p = usePortcullis();

  const guesses = {
    token: (headers: Record<string, string>) =>
      p.call('POST', '/v2/oauth/token', {
        headers,
        json: { grant_type: 'client_credentials', client_id: p.demo.client.client_id, client_secret: 'wrong' },
      }),
    MCP: (headers: Record<string, string>) =>
      p.call('POST', '/v2/mcp', { token: 'wrong', headers, json: { jsonrpc: '2.0', id: 1, method: 'ping' } }),
  };

  /** Sends 21 wrong secrets, each from another address of a list that is gone through again and again. */
  async function statuses(by: keyof typeof guesses, addresses: string[]): Promise<number[]> {
    const answers: number[] = [];
    for (let at = 0; at < 21; at += 1) {
      const { status } = await guesses[by]({ 'x-forwarded-for': addresses[at % addresses.length] ?? '' });
      answers.push(status);
    }
    return answers;
  }

  const ipv4 = ['198.51.100.7', '::ffff:198.51.100.7', '[::FFFF:c633:6407]:443', '0:0:0:0:0:ffff:198.51.100.7'];
  const ipv6 = ['2001:db8:7::1', '[2001:DB8:7::1]:443', '2001:db8:7:0:ffff::2', '2001:db8:7::3%eth0'];

  it.each([
    ['token', ipv4],
    ['MCP', ipv6],
  ] as const)('D3-18: wrong secrets (%s) from %j count for one caller', async (by, addresses) => {
    expect(await statuses(by, [...addresses])).toEqual([...Array(20).fill(401), 429]);
  });
});
