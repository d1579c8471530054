import { type AppError, invalidRequest } from '../errors/app-error.ts';
import type { Exchange } from '../gateway/exchange.ts';
import { GatheredBytes } from '../lib/gathered-bytes.ts';
import { giveLeaveToSend } from './leave-to-send.ts';

export interface BodyLimit {
  maxBytes: number;
  /** What a longer body is answered with. */
  tooLarge(): AppError;
}

/** As long as Node gives a whole request by itself. */
const MAX_MS = 300_000;

/**
 * Reads a request's body. One that is encoded is a 400: nothing is unpacked. A `Content-Length` over the limit is
 * refused before a byte is read, a chunked body the moment it passes it; a client that waits for leave to send is told
 * to go on only here. One that has not come within five minutes is a 400. Of a body that its sender gives up nothing comes: there is nobody to answer.
 */
export function readBytes(exchange: Exchange, { maxBytes, tooLarge }: BodyLimit): Promise<Buffer> {
  const { req } = exchange;
  if (!/^(identity)?$/i.test(req.headers['content-encoding'] ?? '')) {
    return Promise.reject(invalidRequest([{ path: 'Content-Encoding', message: 'must be identity' }]));
  }
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge());
  exchange.bodyRead = true;
  giveLeaveToSend(exchange);
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const body = new GatheredBytes();
  function take(chunk: Buffer): void {
    body.push(chunk);
    if (body.length <= maxBytes) return;
    req.off('data', take).off('end', finish).pause();
    reject(tooLarge());
  }
  // Where its sender has gone nothing is settled, and a timer would hold what has come.
  const late = req.destroyed ? undefined : setTimeout(() => reject(tooSlow()), MAX_MS);
  function finish(): void {
    resolve(body.bytes);
  }
  req
    .on('data', take)
    .once('end', finish)
    .once('close', () => clearTimeout(late));
  return promise.finally(() => clearTimeout(late));
}

function tooSlow(): AppError {
  return invalidRequest([{ path: '', message: 'must come within five minutes' }]);
}
