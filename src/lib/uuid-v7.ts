import { randomFillSync } from 'node:crypto';

const random = Buffer.allocUnsafe(16 * 256);
let used = random.length;

/**
 * Returns a UUID of version 7 (RFC 9562, section 5.7): 48 bits of Unix time in milliseconds, then random bits. Its text
 * sorts by time.
 */
export function uuidV7(nowMs: number = Date.now()): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  random.writeUIntBE(nowMs, used, 6);
  random[used + 6] = 0x70 | ((random[used + 6] ?? 0) & 0x0f);
  random[used + 8] = 0x80 | ((random[used + 8] ?? 0) & 0x3f);
  const hex = random.toString('hex', used, used + 16);
  used += 16;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
