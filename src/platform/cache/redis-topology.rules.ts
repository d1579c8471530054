export const SLOT_COUNT = 16_384;

const POLYNOMIAL = 0x1021;

/** The CRC-16/XMODEM of each byte. */
const CRC_OF_BYTE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc;
});

/**
 * Returns the slot of a key: the hash of the text in its first braces, or of the whole key if they are missing or
 * empty.
 */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(hashed)) crc = ((crc << 8) & 0xffff) ^ (CRC_OF_BYTE[(crc >> 8) ^ byte] ?? 0);
  return crc % SLOT_COUNT;
}

/** A range of slots and its master. */
interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly url: string;
}

export interface Topology {
  readonly ranges: readonly SlotRange[];
  /** The URLs of all members that serve slots, replicas included. */
  readonly members: readonly string[];
}

/**
 * Parses the topology of a cluster from the reply of one of its members to CLUSTER SLOTS.
 * @param asked the URL of that member; except for host and port, it is valid for the others too.
 */
export function topologyOf(slots: unknown, asked: string): Topology {
  const members = new Set<string>();
  const ranges = listOf(slots).map((entry): SlotRange => {
    const [first, last, ...servers] = listOf(entry);
    const urls = servers.map((server) => {
      const [host, port] = listOf(server);
      return urlAt(asked, host, port);
    });
    for (const url of urls) members.add(url);
    return { first: Number(first), last: Number(last), url: urls[0] ?? asked };
  });
  return { ranges, members: [...members] };
}

/** The reply of a server to a command for a slot that it cannot serve now. */
export type Redirection =
  | { kind: 'moved' | 'incomplete' | 'down' }
  /** The slot is being moved: the server at this URL has the keys that this one no longer has. */
  | { kind: 'ask'; url: string };

/**
 * Parses an error by which a server redirects or refuses a command for a slot; returns undefined for any other error.
 */
export function redirectionOf(message: string, asked: string): Redirection | undefined {
  const [code, , address = ''] = message.split(' ');
  if (code === 'MOVED') return { kind: 'moved' };
  if (code === 'TRYAGAIN') return { kind: 'incomplete' };
  if (code === 'CLUSTERDOWN') return { kind: 'down' };
  if (code !== 'ASK') return undefined;
  const colon = address.lastIndexOf(':');
  return { kind: 'ask', url: urlAt(asked, address.slice(0, colon), address.slice(colon + 1)) };
}

/** Returns the URL of a server. One that does not know its own host has the host that was asked. */
function urlAt(asked: string, host: unknown, port: unknown): string {
  const url = new URL(asked);
  if (typeof host === 'string' && host !== '' && host !== '?') url.hostname = host.includes(':') ? `[${host}]` : host;
  url.port = String(port);
  return url.href;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
