import type { NextFunction, Request, Response } from 'express';
import { GatheredBytes } from '../../lib/gathered-bytes.ts';
import { decodeUtf8, JsonLimitError, parseJson, Utf8Error } from '../../lib/json.ts';
import { type AppError, invalidRequest, payloadTooLarge } from '../../platform/errors.ts';
import { type Exchange, exchangeOf } from './exchange.ts';
import { sendContinue } from './responses.ts';

/** As long as Node gives a whole request by itself. */
const MAX_MS = 300_000;

/**
 * Reads a request's body. One that is encoded is a 400: nothing is unpacked. A `Content-Length` over the limit is refused
 * with `tooLarge` before a byte is read, a chunked body the moment it passes it; a client that waits for leave to send is
 * told to go on only here. One that has not come within five minutes is a 400. Of a body that its sender gives up nothing
 * comes: there is nobody to answer.
 */
export function readBytes(exchange: Exchange, maxBytes: number, tooLarge = payloadTooLarge): Promise<Buffer> {
  const { req } = exchange;
  if (!/^(identity)?$/i.test(req.headers['content-encoding'] ?? '')) {
    return Promise.reject(invalidRequest([{ path: 'Content-Encoding', message: 'must be identity' }]));
  }
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge());
  exchange.audit.isBodyRead = true;
  sendContinue(exchange);
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

/** Reads the body as bytes, up to the endpoint's limit; a longer one is a 413, over a limit of the route's own a 400. */
export async function readBody(req: Request, _res: Response, next: NextFunction): Promise<void> {
  const exchange = exchangeOf(req);
  const { flags, max_body_bytes = 0 } = exchange.found.endpoint ?? {};
  const limit = flags?.bodyLimit;
  const tooLarge = () => invalidRequest([{ path: '', message: `must be at most ${limit} bytes` }]);
  req.body = await (limit === undefined ? readBytes(exchange, max_body_bytes) : readBytes(exchange, limit, tooLarge));
  next();
}

/**
 * The JSON body of a request that `readBody` has read.
 * @throws AppError 400 for another content type, malformed UTF-8 or malformed JSON, or one that costs too much.
 */
export function jsonBody(req: Request): unknown {
  return jsonOf(exchangeOf(req), bytesOf(req));
}

/** The same of bytes that were read in another way. @throws AppError 400, as `jsonBody` does. */
export function jsonOf(exchange: Exchange, bytes: Buffer): unknown {
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(exchange.req.headers['content-type'] ?? '')) {
    throw invalidRequest([{ path: 'Content-Type', message: 'must be application/json' }]);
  }
  const value = parseBody(bytes);
  exchange.audit.isBodyJson = true;
  return value;
}

/** The bytes of a request that `readBody` has read; empty where it had no body. */
export function bytesOf(req: Request): Buffer {
  return Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
}

function parseBody(bytes: Buffer): unknown {
  try {
    return parseJson(decodeUtf8(bytes));
  } catch (error) {
    if (error instanceof JsonLimitError) throw invalidRequest([{ path: '', message: error.message }]);
    if (error instanceof SyntaxError || error instanceof Utf8Error) {
      throw invalidRequest([{ path: '', message: 'must be JSON in UTF-8' }]);
    }
    throw error;
  }
}
