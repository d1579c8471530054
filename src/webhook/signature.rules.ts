import { createHmac, timingSafeEqual } from 'node:crypto';

const TOLERANCE_S = 300;

/** How notifications are signed. Without a key nothing is judged. */
export interface SignaturePolicy {
  /** The key in force and, during a rotation, the one before: either may have signed. */
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
 * Whether a notification is signed as the policy asks (Standard Webhooks: HMAC-SHA256 of `id.timestamp.body`, one `v1`
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
