import { GatheredBytes } from '../lib/gathered-bytes.ts';

/** A body has more bytes than it may. */
export class BodyTooLongError extends Error {
  override name = 'BodyTooLongError';
}

/**
 * All bytes of a body, at most so many.
 * @throws BodyTooLongError; what is left is not read.
 */
export async function bytesOf(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const gathered = new GatheredBytes();
  // Leaving the loop closes the connection.
  for await (const chunk of body) {
    gathered.push(chunk);
    if (gathered.length > maxBytes) throw new BodyTooLongError(`the body has more than ${maxBytes} bytes`);
  }
  return gathered.bytes;
}
