const POLYNOMIAL = 0x82f63b78;

/** The remainder of each byte. */
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit += 1) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0);
  return remainder;
});

/** Returns the CRC-32C (Castagnoli; RFC 3720, appendix B.4) of the bytes from `from` to before `to`. */
export function crc32c(bytes: Buffer, from: number, to: number): number {
  let crc = -1;
  for (let at = from; at < to; at += 1) crc = (TABLE[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}
