const POLYNOMIAL = 0x82f63b78;
const SLICES = 4;

/**
 * Four tables of 256 remainders, one after another: table n, from 0, has the remainder of each byte when n zero bytes
 * follow it.
 */
const TABLES = tables();

/**
 * Returns the CRC-32C (Castagnoli; RFC 3720, appendix B.4) of the bytes from `from` to before `to`, computed four bytes
 * at a time.
 */
export function crc32c(bytes: Buffer, from: number, to: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let crc = -1;
  let at = from;
  for (const blocksEnd = to - ((to - from) % SLICES); at < blocksEnd; at += SLICES) {
    crc ^= view.getInt32(at, true);
    crc =
      (TABLES[768 + (crc & 0xff)] ?? 0) ^
      (TABLES[512 + ((crc >>> 8) & 0xff)] ?? 0) ^
      (TABLES[256 + ((crc >>> 16) & 0xff)] ?? 0) ^
      (TABLES[crc >>> 24] ?? 0);
  }
  for (; at < to; at += 1) crc = (TABLES[(crc ^ view.getUint8(at)) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}

function tables(): Int32Array {
  const all = new Int32Array(256 * SLICES);
  for (let byte = 0; byte < 256; byte += 1) {
    let remainder = byte;
    for (let bit = 0; bit < 8; bit += 1) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0);
    all[byte] = remainder;
  }
  for (let at = 256; at < all.length; at += 1) {
    const shorter = all[at - 256] ?? 0;
    all[at] = (shorter >>> 8) ^ (all[shorter & 0xff] ?? 0);
  }
  return all;
}
