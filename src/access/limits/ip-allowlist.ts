import { BlockList, isIP } from 'node:net';
import { groupsOf, plainAddress, withoutZone } from '../../lib/ip-address.ts';
import type { ClientRecord } from '../identity/callers.ts';

/**
 * The allowed networks of a client, in a separate list for each family: in a shared one an IPv6 network such as `::/64`
 * would allow all of IPv4.
 */
interface Allowlist {
  ipv4: BlockList;
  ipv6: BlockList;
}

interface Network {
  family: 'ipv4' | 'ipv6';
  address: string;
  /** The length of the prefix in bits. */
  prefix: number;
}

const compiled = new WeakMap<ClientRecord, Allowlist>();

/** Checks whether an address is one of the client's allowed addresses or in one of its allowed networks. */
export function isAllowedAddress(client: ClientRecord, address: string): boolean {
  const plain = plainAddress(address);
  const family = isIP(plain);
  if (family === 0) return false;
  const { ipv4, ipv6 } = listOf(client);
  return family === 6 ? ipv6.check(plain, 'ipv6') : ipv4.check(plain, 'ipv4');
}

/** Checks whether each valid inner entry is contained in one of the outer entries; invalid entries allow no address. */
export function areAllNetworksWithin(outer: readonly string[], inner: readonly string[]): boolean {
  const known = new Set(networksOf(outer).map(commonBits));
  const lengths = [...new Set([...known].map((bits) => bits.length))];
  return networksOf(inner)
    .map(commonBits)
    .every((bits) => lengths.some((length) => length <= bits.length && known.has(bits.slice(0, length))));
}

function networksOf(entries: readonly string[]): Network[] {
  return entries.map((entry) => networkOf(entry.trim())).filter((network) => network !== undefined);
}

function listOf(client: ClientRecord): Allowlist {
  return compiled.getOrInsertComputed(client, () => {
    const list = { ipv4: new BlockList(), ipv6: new BlockList() };
    for (const { family, address, prefix } of networksOf(client.allowedIps))
      list[family].addSubnet(address, prefix, family);
    return list;
  });
}

/**
 * Parses an address or a network (RFC 4632, RFC 4291); returns undefined for any other text, which allows no address.
 */
function networkOf(entry: string): Network | undefined {
  const [, address = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  const family = isIP(address);
  if (family === 0) return undefined;
  const bits = family === 6 ? 128 : 32;
  const prefix = digits === undefined ? bits : Number(digits);
  if (prefix > bits) return undefined;
  const plain = plainAddress(address);
  if (family === 4) return { family: 'ipv4', address: plain, prefix };
  // An IPv6 network that is wider than the range of IPv4-mapped addresses stays an IPv6 network.
  if (isIP(plain) === 4 && prefix >= 96) return { family: 'ipv4', address: plain, prefix: prefix - 96 };
  return { family: 'ipv6', address: withoutZone(address), prefix };
}

/** Returns the prefix of a network as text: its family, and its first bits as digits. */
function commonBits({ family, address, prefix }: Network): string {
  const groups = family === 'ipv4' ? address.split('.').map(Number) : groupsOf(address);
  const width = family === 'ipv4' ? 8 : 16;
  const bits = groups.map((group) => group.toString(2).padStart(width, '0')).join('');
  return `${family} ${bits.slice(0, prefix)}`;
}
