/** A body has more bytes than it may. */
export class BodyTooLongError extends Error {
  override name = 'BodyTooLongError';
}

/**
 * All bytes of a body, at most so many.
 * @throws BodyTooLongError; what is left is not read.
 */
export async function bytesOf(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop closes the connection.
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) throw new BodyTooLongError(`the body has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
