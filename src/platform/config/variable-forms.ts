import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { isIP, isIPv6 } from 'node:net';
import proxyAddr from 'proxy-addr';
import { z } from 'zod';
import { readAs } from '../../lib/input.ts';
import { parsedOrNone } from '../../lib/json.ts';

const MIN_BYTES = 24;
const MAX_BYTES = 64;

/** The required format of a signing secret, as an error message says it. */
const SIGNING_SECRET_FORM = `whsec_ and ${MIN_BYTES} to ${MAX_BYTES} bytes in base64`;

/**
 * Returns the key in a symmetric secret of Standard Webhooks (its specification, section "Signature scheme"): `whsec_`
 * and 24 to 64 bytes in padded base64. Returns undefined for any other text.
 */
export function signingKey(secret: string): Buffer | undefined {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  if (encoded === undefined) return undefined;
  const key = Buffer.from(encoded, 'base64');
  if (key.toString('base64') !== encoded) return undefined;
  return key.length >= MIN_BYTES && key.length <= MAX_BYTES ? key : undefined;
}

/** Returns the Ed25519 private key in a text: PKCS #8 in PEM, or its DER in base64; undefined for any other text. */
export function ed25519Key(
  text: string,
  create: (key: Parameters<typeof createPrivateKey>[0]) => KeyObject = createPrivateKey,
): KeyObject | undefined {
  const der = { key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' } as const;
  const key = parsedOrNone(() => create(text.startsWith('-----') ? text : der));
  return key?.asymmetricKeyType === 'ed25519' ? key : undefined;
}

/** Returns Ed25519 keys that verify: blocks of PEM, private or public, or one private key as above; undefined if one is none. */
export function ed25519Keys(text: string): KeyObject[] | undefined {
  const blocks = text.match(/-----BEGIN[\s\S]+?-----END.*/g) ?? [text];
  const keys = blocks.map((block) => ed25519Key(block) ?? ed25519Key(block, () => createPublicKey(block)));
  return keys.every((key) => key !== undefined) ? keys : undefined;
}

const SECRET_BYTES = 32;

/** Matches `production`, and a spelling of it that is cut short, has other cases, or is a letter off. */
const LIKE_PRODUCTION = /^\s*(?:pro?d.*|.{3,5}uction\s*)$/is;

export const text = z.string().min(1);
export const environment = z
  .string()
  .refine((value) => value === 'production' || !LIKE_PRODUCTION.test(value), 'exactly production, or a different word');
export const port = integer(0, 65_535, 'a port number, 0 to 65535');
export const atLeastOne = integer(1, 2 ** 31 - 1, 'a whole number without a unit, at least 1');
export const ratio = z
  .string()
  .regex(/^(0(\.\d{1,6})?|1(\.0{1,6})?)$/, 'a number from 0 to 1')
  .transform(Number);
export const days = integer(1, 36_500, 'a number of days, 1 to 36500');
const list = text.transform((value) =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);
/** A list of names, of which each has a letter or a digit. */
export const names = list.refine((all) => all.every((name) => /[\p{L}\p{N}]/u.test(name)), {
  error: 'a comma-separated list of names such as account_pin',
});
export const flag = z.enum(['true', 'false'], 'true or false').transform((value) => value === 'true');
export const secret = z
  .string()
  .refine((value) => Buffer.byteLength(value) >= SECRET_BYTES, `at least ${SECRET_BYTES} bytes`);
export const signingSecret = z.string().refine((value) => signingKey(value) !== undefined, SIGNING_SECRET_FORM);
export const ed25519PrivateKey = z
  .string()
  .refine((value) => ed25519Key(value) !== undefined, 'an Ed25519 private key: PKCS #8 as PEM, or as DER in base64');
export const ed25519FormerKeys = z
  .string()
  .refine((value) => ed25519Keys(value) !== undefined, 'Ed25519 keys, private or public, as concatenated PEM');
export const checkpoints = z
  .string()
  .regex(/^(?:file:.+|kafka:[a-zA-Z0-9._-]{1,200})$/, '`file:` and a path, or `kafka:` and the name of a topic');
export const httpUrl = z
  .url({ protocol: /^https?$/, error: 'a URL that begins with http:// or https://' })
  .refine((url) => !/[?#@]/.test(url), 'a URL without a user, a query or a fragment')
  .transform((url) => url.replace(/\/+$/, ''));
export const databaseUrl = storeUrl(
  z.url({ protocol: /^postgres(ql)?$/, error: 'a URL that begins with postgres:// or postgresql://', abort: true }),
);
export const redisUrl = storeUrl(
  z.url({ protocol: /^rediss?$/, error: 'a URL that begins with redis:// or rediss://', abort: true }),
).refine((url) => /^\/?\d*$/.test(new URL(url).pathname), 'a URL whose path is the number of a database or empty');
export const brokers = list.refine((hosts) => hosts.length > 0 && hosts.every(isBroker), {
  error: 'a comma-separated list of host:port without a scheme, an IPv6 address in brackets',
});
export const peers = list.refine(
  // No short form of an address is taken: `1` would be 0.0.0.1.
  (all) =>
    all.every((peer) => isIP(peer.replace(/\/.*$/, '')) !== 0 || /^[a-z]+$/.test(peer)) &&
    parsedOrNone(() => proxyAddr.compile(all)) !== undefined,
  {
    error:
      'a comma-separated list of IP addresses, CIDR ranges, loopback, linklocal or uniquelocal: the proxies, such as 10.0.0.0/8, not their number',
  },
);
export const origins = list.refine(
  (all) =>
    all.length > 0 &&
    all.every((origin) => origin === '*' || (!origin.includes('*') && URL.parse(origin)?.origin === origin)),
  {
    error:
      '*, or a comma-separated list of origins as browsers send them, such as https://app.example: each in full, without a wildcard, a path or a default port',
  },
);

function isBroker(text: string): boolean {
  const [, ipv6, port] = /^(?:\[([^\]]+)\]|[^\s:/[\]]+):(\d{1,5})$/.exec(text) ?? [];
  return Number(port) <= 65_535 && (ipv6 === undefined || isIPv6(ipv6));
}

function integer(minimum: number, maximum: number, what: string) {
  return z
    .string()
    .regex(/^\d{1,10}$/, what)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, what);
}

/**
 * Returns the schema of a store's URL. It requires a host: without one, the driver would use a default that is visible
 * nowhere. A PostgreSQL URL may have it, or the folder of its socket, in the query.
 */
function storeUrl(url: z.ZodURL) {
  return url
    .refine((text) => new URL(text).host !== '' || new URL(text).searchParams.has('host'), {
      error: 'a URL with a host',
      abort: true,
    })
    .refine(isDecodable, 'a URL whose parts are percent-encoded: % is %25');
}

function isNodeUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && isDecodable(url.username + url.password);
}

function isDecodable(text: string): boolean {
  return parsedOrNone(() => decodeURIComponent(text)) !== undefined;
}

export const gasNodes = z
  .string()
  .transform(
    readAs(gasNodesIn, 'a comma-separated list of network_id=url, each network once, each URL http:// or https://'),
  );

function gasNodesIn(text: string) {
  // A URL may contain commas: only one that is followed by an id and `=` separates two entries.
  const entries = text.split(/,(?=\s*[0-9a-f-]{36}=)/i).map((entry) => /^\s*([^=]*)=(.*?)\s*$/.exec(entry));
  const nodes = entries.map((entry) => [entry?.[1]?.toLowerCase() ?? '', entry?.[2] ?? ''] as const);
  const isRight = nodes.every(([id, url]) => z.guid().safeParse(id).success && isNodeUrl(url));
  return isRight && new Set(nodes.map(([id]) => id)).size === nodes.length ? nodes : undefined;
}

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]);
export const sampler = z.enum(SAMPLERS, SAMPLERS.join(', '));
export const compression = z.enum(['gzip', 'none'], 'gzip or none');
export const otlpPairs = z
  .string()
  .transform(readAs(pairsIn, 'a comma-separated list of name=value, the values percent-encoded'));

function pairsIn(text: string) {
  const pairs = text.split(',').map((part) => /^\s*([\w!#$%&'*+.^`|~-]+)=(.*?)\s*$/.exec(part));
  if (!pairs.every((pair) => pair !== null)) return undefined;
  return parsedOrNone(() =>
    Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, decodeURIComponent(value)])),
  );
}
