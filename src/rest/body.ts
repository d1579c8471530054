import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { AppError, invalidRequest } from '../errors/app-error.ts';
import { type Exchange, exchangeOf } from '../gateway/exchange.ts';
import { decodeUtf8, JsonLimitError, parseJson, Utf8Error } from '../lib/json.ts';
import { type BodyLimit, readBytes } from './read-bytes.ts';

/** Reads the body as bytes, up to the endpoint's limit; a longer one is a 413. */
export function readBody(req: Request, _res: Response, next: NextFunction): Promise<void> {
  const maxBytes = exchangeOf(req).match?.endpoint.max_body_bytes ?? 0;
  return readUpTo({ maxBytes, tooLarge: payloadTooLarge }, req, next);
}

/** Reads the body as bytes, up to a limit of its own. */
export function bodyReader(limit: BodyLimit): RequestHandler {
  return (req, _res, next) => readUpTo(limit, req, next);
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
  exchange.isBodyJson = true;
  return value;
}

/** The bytes of a request that `readBody` has read; empty where it had no body. */
export function bytesOf(req: Request): Buffer {
  return Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
}

async function readUpTo(limit: BodyLimit, req: Request, next: NextFunction): Promise<void> {
  req.body = await readBytes(exchangeOf(req), limit);
  next();
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

/** 413: the rest is not read. */
export function payloadTooLarge(): AppError {
  return new AppError(413, 'payload_too_large', { headers: { Connection: 'close' } });
}
