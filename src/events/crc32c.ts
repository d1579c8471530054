const POLYNOMIAL = 0x82f63b78;
const SLICES = 4;

/** For each byte, its remainder with so many zero bytes behind it. */
const TABLES = tables();

/** The CRC-32C (Castagnoli, RFC 3720 appendix B.4) of a part of a buffer, four bytes at a time. */
export function crc32c(bytes: Buffer, from: number, to: number): number {
  const [t0, t1, t2, t3] = TABLES;
  let crc = -1;
  let at = from;
  for (const whole = to - ((to - from) % SLICES); at < whole; at += SLICES) {
    crc ^= bytes.readInt32LE(at);
    crc =
      (t3[crc & 0xff] ?? 0) ^ (t2[(crc >>> 8) & 0xff] ?? 0) ^ (t1[(crc >>> 16) & 0xff] ?? 0) ^ (t0[crc >>> 24] ?? 0);
  }
  for (; at < to; at += 1) crc = (t0[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}

function tables(): [Int32Array, Int32Array, Int32Array, Int32Array] {
  const first = new Int32Array(256).map((_, byte) => {
    let remainder = byte;
    for (let bit = 0; bit < 8; bit += 1) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0);
    return remainder;
  });
  const shifted = (table: Int32Array) => table.map((crc) => (crc >>> 8) ^ (first[crc & 0xff] ?? 0));
  const second = shifted(first);
  const third = shifted(second);
  return [first, second, third, shifted(third)];
}
