import { BlockList, isIP } from 'node:net';
import { plainAddress, withoutZone } from '../../lib/ip-address.ts';
import type { ClientRecord } from '../identity/client-record.ts';

/** A list for each family: in a common one an IPv6 network such as `::/64` would let in all of IPv4. */
interface Allowlist {
  ipv4: BlockList;
  ipv6: BlockList;
}

interface Network {
  family: 'ipv4' | 'ipv6';
  address: string;
  /** The number of bits that its addresses have in common. */
  prefix: number;
}

const compiled = new WeakMap<ClientRecord, Allowlist>();

/** Returns whether an address is one of the client's allowed addresses, or in one of its allowed networks. */
export function isAllowedAddress(client: ClientRecord, address: string): boolean {
  const plain = plainAddress(address);
  const family = isIP(plain);
  if (family === 0) return false;
  const { ipv4, ipv6 } = listOf(client);
  return family === 6 ? ipv6.check(plain, 'ipv6') : ipv4.check(plain, 'ipv4');
}

/** Returns whether each inner entry that lets anybody in is contained in one of the outer ones. */
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
  const known = compiled.get(client);
  if (known) return known;
  const list = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const { family, address, prefix } of networksOf(client.allowedIps))
    list[family].addSubnet(address, prefix, family);
  compiled.set(client, list);
  return list;
}

/** Parses an address or a network (RFC 4632, RFC 4291); undefined for any other text, which lets nobody in. */
function networkOf(entry: string): Network | undefined {
  const [, address = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  const family = isIP(address);
  if (family === 0) return undefined;
  const bits = family === 6 ? 128 : 32;
  const prefix = digits === undefined ? bits : Number(digits);
  if (prefix > bits) return undefined;
  const plain = plainAddress(address);
  if (family === 4) return { family: 'ipv4', address: plain, prefix };
  // A network that is wider than the mapped addresses is one of IPv6.
  if (isIP(plain) === 4 && prefix >= 96) return { family: 'ipv4', address: plain, prefix: prefix - 96 };
  return { family: 'ipv6', address: withoutZone(address), prefix };
}

/** Returns what the addresses of a network have in common: its family, and their first bits as digits. */
function commonBits({ family, address, prefix }: Network): string {
  const groups = family === 'ipv4' ? address.split('.').map(Number) : groupsOf(address);
  const width = family === 'ipv4' ? 8 : 16;
  const bits = groups.map((group) => group.toString(2).padStart(width, '0')).join('');
  return `${family} ${bits.slice(0, prefix)}`;
}

/** Returns the eight numbers of an IPv6 address (RFC 4291 section 2.2). */
function groupsOf(address: string): number[] {
  const [head = [], tail = []] = new URL(`http://[${address}]/`).hostname
    .slice(1, -1)
    .split('::')
    .map((side) => (side === '' ? [] : side.split(':').map((group) => Number.parseInt(group, 16))));
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail];
}
