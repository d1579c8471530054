import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { AppError, invalidRequest } from '../errors/app-error.ts';
import { exchangeOf } from '../gateway/exchange.ts';
import { decodeUtf8, parseJson, Utf8Error } from '../lib/json.ts';

const readers = new Map<number, RequestHandler>();

/**
 * Reads the body as bytes, up to the endpoint's limit. A `Content-Length` over it is refused before a byte is read, a
 * chunked body the moment it passes it.
 */
export function readBody(req: Request, res: Response, next: NextFunction): void {
  const exchange = exchangeOf(req);
  const limit = exchange.match?.endpoint.max_body_bytes ?? 0;
  if (Number(req.headers['content-length'] ?? 0) > limit) throw tooLarge(limit);
  exchange.bodyRead = true;
  reader(limit)(req, res, (error?: unknown) => next(error === undefined ? undefined : bodyError(error, limit)));
}

/**
 * The JSON body of a request that `readBody` has read.
 * @throws AppError 400 for another content type, malformed UTF-8 or malformed JSON.
 */
export function jsonBody(req: Request): unknown {
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(req.headers['content-type'] ?? '')) {
    throw invalidRequest([{ path: 'Content-Type', message: 'must be application/json' }]);
  }
  return parseBody(bytesOf(req));
}

/** The bytes of a request that `readBody` has read; empty where it had no body. */
export function bytesOf(req: Request): Buffer {
  return Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
}

function parseBody(bytes: Buffer): unknown {
  try {
    return parseJson(decodeUtf8(bytes));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof Utf8Error) {
      throw invalidRequest([{ path: '', message: 'must be JSON in UTF-8' }]);
    }
    throw error;
  }
}

function reader(limit: number): RequestHandler {
  const existing = readers.get(limit);
  if (existing) return existing;
  const created = express.raw({ limit, type: () => true });
  readers.set(limit, created);
  return created;
}

function bodyError(error: unknown, limit: number): unknown {
  if (typeof error !== 'object' || error === null || !('type' in error) || !('status' in error)) return error;
  if (error.status === 413) return tooLarge(limit);
  const status = Number(error.status);
  return status >= 400 && status < 500
    ? invalidRequest([{ path: '', message: `unreadable body: ${error.type}` }])
    : error;
}

function tooLarge(limit: number): AppError {
  return new AppError(413, 'payload_too_large', {
    issues: [{ path: '', message: `must be at most ${limit} bytes` }],
    headers: { Connection: 'close' },
  });
}
