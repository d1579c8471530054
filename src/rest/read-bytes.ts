import type { AppError } from '../errors/app-error.ts';
import type { Exchange } from '../gateway/exchange.ts';

export interface BodyLimit {
  maxBytes: number;
  /** What a longer body is answered with. */
  tooLarge(): AppError;
}

/**
 * Reads a request's body. A `Content-Length` over the limit is refused before a byte is read, a chunked body the moment
 * it passes it; a client that waits for leave to send is told to go on only here. Of a body that its sender gives up
 * nothing comes: there is nobody to answer.
 */
export function readBytes(exchange: Exchange, { maxBytes, tooLarge }: BodyLimit): Promise<Buffer> {
  const { req, res } = exchange;
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge());
  exchange.bodyRead = true;
  if (/^100-continue$/i.test(req.headers.expect ?? '')) res.writeContinue();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let length = 0;
  function take(chunk: Buffer): void {
    length += chunk.length;
    chunks.push(chunk);
    if (length <= maxBytes) return;
    req.off('data', take).off('end', finish).pause();
    reject(tooLarge());
  }
  function finish(): void {
    resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
  }
  req.on('data', take).once('end', finish);
  return promise;
}
