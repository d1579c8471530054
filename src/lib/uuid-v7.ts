import { randomUUIDv7 } from 'node:crypto';

/**
 * Returns a UUID of version 7 (RFC 9562, section 5.7): 48 bits of Unix time in milliseconds, then random bits. Its text
 * sorts by time. Node's own have the time of the machine; that of an instance may be set.
 */
export function uuidV7(nowMs: number = Date.now()): string {
  const time = nowMs.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}${randomUUIDv7().slice(13)}`;
}
