import { createHmac, timingSafeEqual } from 'node:crypto';
import { Counter } from 'prom-client';
import type { Log } from '../../lib/log.ts';
import { MemoryFailureCounts } from '../../platform/cache/memory-cache.ts';

/** The Basic credentials of the chain processor; during a rotation the previous password is accepted too. */
export interface BasicCredentials {
  username: string;
  passwords: readonly string[];
}

const LENGTH_BYTES = 4;

/** Returns a function that tells whether an `Authorization` header has the credentials (RFC 7617), in constant time. */
export function basicCredentials({ username, passwords }: BasicCredentials): (header: string | undefined) => boolean {
  // What follows the first colon is the password: no caller has a username with one in it.
  const pairs = username.includes(':') ? [] : passwords.map((password) => Buffer.from(`${username}:${password}`));
  const size = LENGTH_BYTES + Math.max(0, ...pairs.map(({ length }) => length));
  const expected = pairs.map((pair) => padded(pair, size));
  return (header) => {
    const encoded = /^Basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header ?? '')?.[1];
    if (encoded === undefined) return false;
    const given = padded(Buffer.from(encoded, 'base64'), size);
    return expected.reduce((found, pair) => timingSafeEqual(given, pair) || found, false);
  };
}

/** Writes the length of a text and its beginning into `size` bytes, so that the time of a comparison does not depend on what is expected. */
function padded(text: Buffer, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  bytes.writeUInt32BE(text.length);
  text.copy(bytes, LENGTH_BYTES);
  return bytes;
}

const TOLERANCE_S = 300;

/** How notifications must be signed. Without a key signatures are not verified. */
export interface SignaturePolicy {
  /** The key in force and, during a rotation, the previous one. */
  keys: readonly Buffer[];
  /** Whether a notification without any of the headers is refused. */
  isRequired: boolean;
}

/** A notification as it came: its headers by lower-case names, the bytes of its body, when it arrived. */
interface Signed {
  headers: NodeJS.Dict<string | string[]>;
  body: Buffer;
  receivedAtMs: number;
}

/**
 * Tells whether a notification is signed as the policy asks (Standard Webhooks: HMAC-SHA256 of `id.timestamp.body`, one `v1`
 * signature of several is enough), in constant time. Some but not all of the headers, or a timestamp that is more
 * than 300 whole seconds away, is not; none at all is, unless a signature is required.
 */
export function isSignedAs({ keys, isRequired }: SignaturePolicy, { headers, body, receivedAtMs }: Signed): boolean {
  if (keys.length === 0) return true;
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (id === undefined && timestamp === undefined && signatures === undefined) return !isRequired;
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return false;
  if (id === '' || !isNear(timestamp, receivedAtMs)) return false;
  const head = Buffer.from(`${id}.${timestamp}.`, 'latin1');
  const expected = keys.map((key) => `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`);
  const given = signatures.split(' ');
  return expected.reduce((found, one) => given.reduce((any, other) => isEqual(one, other) || any, found), false);
}

function isNear(timestamp: string, nowMs: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(Math.floor(nowMs / 1_000) - Number(timestamp)) <= TOLERANCE_S;
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

const MANY = 20;

interface WrongPasswordsParts {
  log: Log;
  nowMs(): number;
}

/** Counts wrong passwords of the webhook by address, for monitoring: there is no 429 for them, since its statuses are a closed list. */
export class WrongPasswords {
  /** The counter, for the registry of the process. */
  readonly counted = new Counter({
    name: 'portcullis_webhook_wrong_passwords_total',
    help: 'Wrong passwords at the webhook: repeated where their address had sent twenty within the minute, else single.',
    labelNames: ['kind'],
    registers: [],
  });
  readonly #parts: WrongPasswordsParts;
  readonly #byAddress = new MemoryFailureCounts();

  constructor(parts: WrongPasswordsParts) {
    this.#parts = parts;
    for (const kind of ['single', 'repeated']) this.counted.inc({ kind }, 0);
  }

  /** Counts a wrong password, and logs every twentieth of an address within a minute. */
  add(address: string): void {
    const { log, nowMs } = this.#parts;
    const { count } = this.#byAddress.count(address, nowMs());
    this.counted.inc({ kind: count > MANY ? 'repeated' : 'single' });
    if (count % MANY > 0) return;
    log.warn({ real_ip: address, count }, 'many wrong webhook passwords came from an address within a minute');
  }
}
