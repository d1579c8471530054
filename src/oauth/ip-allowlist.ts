import { BlockList, isIP } from 'node:net';
import type { ClientRecord } from '../clients/client-record.ts';
import { plainAddress, withoutZone } from '../lib/ip-address.ts';

/** One list for each family: in a common one an IPv6 network such as `::/64` would let in all of IPv4. */
interface Allowlist {
  ipv4: BlockList;
  ipv6: BlockList;
}

const compiled = new WeakMap<ClientRecord, Allowlist>();

/** Whether an address is one of the client's addresses or in one of its networks. */
export function isAllowedAddress(client: ClientRecord, address: string): boolean {
  const plain = plainAddress(address);
  const family = isIP(plain);
  if (family === 0) return false;
  const { ipv4, ipv6 } = listOf(client);
  return family === 6 ? ipv6.check(plain, 'ipv6') : ipv4.check(plain, 'ipv4');
}

function listOf(client: ClientRecord): Allowlist {
  const known = compiled.get(client);
  if (known) return known;
  const list = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const entry of client.allowedIps) addEntry(list, entry.trim());
  compiled.set(client, list);
  return list;
}

/** What is neither an address nor a network lets nobody in. */
function addEntry({ ipv4, ipv6 }: Allowlist, entry: string): void {
  const [, address = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  const family = isIP(address);
  if (family === 0) return;
  const bits = family === 6 ? 128 : 32;
  const prefix = digits === undefined ? bits : Number(digits);
  if (prefix > bits) return;
  const plain = plainAddress(address);
  if (family === 4) ipv4.addSubnet(plain, prefix, 'ipv4');
  // A network that is wider than the mapped addresses is one of IPv6.
  else if (isIP(plain) === 4 && prefix >= 96) ipv4.addSubnet(plain, prefix - 96, 'ipv4');
  else ipv6.addSubnet(withoutZone(address), prefix, 'ipv6');
}
