import type { PartitionerArgs } from 'kafkajs';

const SEED = 0x9747b28c;
const FACTOR = 0x5bd1e995;

/**
 * Returns the partition of a message as Kafka's own clients choose it: the murmur2 hash of the key's UTF-8 bytes,
 * without its sign, modulo the number of partitions. The partitioner of kafkajs gives the same result with BigInt and
 * is far slower.
 */
export function partitionOf({ message: { key }, partitionMetadata }: PartitionerArgs): number {
  return (murmur2(Buffer.from(String(key ?? ''))) & 0x7fffffff) % partitionMetadata.length;
}

function murmur2(bytes: Buffer): number {
  const whole = bytes.length - (bytes.length % 4);
  let hash = SEED ^ bytes.length;
  for (let at = 0; at < whole; at += 4) {
    const mixed = Math.imul(bytes.readInt32LE(at), FACTOR);
    hash = Math.imul(hash, FACTOR) ^ Math.imul(mixed ^ (mixed >>> 24), FACTOR);
  }
  if (whole < bytes.length) {
    for (let at = bytes.length - 1; at >= whole; at -= 1) hash ^= (bytes[at] ?? 0) << (8 * (at - whole));
    hash = Math.imul(hash, FACTOR);
  }
  hash = Math.imul(hash ^ (hash >>> 13), FACTOR);
  return hash ^ (hash >>> 15);
}
