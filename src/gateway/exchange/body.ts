import type { NextFunction, Request, Response } from 'express';
import { GatheredBytes } from '../../lib/gathered-bytes.ts';
import { isJsonType, type KnownMembers, readInput } from '../../lib/json.ts';
import { invalidRequest, payloadTooLarge, type Refusal, tooLong } from '../../platform/errors.ts';
import { type Exchange, exchangeOf } from './exchange.ts';

/** The longest time to receive a body, in ms; the same as Node's default for a whole request. */
const MAX_MS = 300_000;
/** How long, in ms, a body may take until its end without another check of the caller. */
const RECHECK_MS = 500;
/** What a byte of a body takes: it is in the body, and in the beginning that is captured for the audit record. */
export const BODY_WEIGHT = 2;

/**
 * Sends 100 Continue to a client that waits for it before it sends its body (RFC 9110 section 10.1.1). HTTP/1.0 has no
 * interim responses: its client would take it for the final response.
 */
export function sendContinue({ req, res }: Exchange): void {
  if (req.httpVersion !== '1.0' && /^100-continue$/i.test(req.headers.expect ?? '')) res.writeContinue();
}

/** Checks whether a Content-Encoding leaves the bytes of a body as they are. */
export function isIdentity(encoding = ''): boolean {
  return /^(?:identity|[\s,])*$/i.test(encoding);
}

/**
 * Reads the body of a request, after sending 100 Continue if the client waits for it. Rejects with a 400 when the body
 * has a content encoding or takes more than five minutes, with `tooLarge` when it is longer than `maxBytes`, with a
 * 503 when requests hold too much memory and this one has to make room, and with a 401 when the caller's access has ended
 * meanwhile. Never settles when the client leaves.
 */
export function readBytes(exchange: Exchange, maxBytes: number, tooLarge = payloadTooLarge): Promise<Buffer> {
  const { req, state, held } = exchange;
  if (!isIdentity(req.headers['content-encoding'])) {
    return Promise.reject(invalidRequest([{ path: 'Content-Encoding', message: 'must be identity' }]));
  }
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge(maxBytes));
  exchange.audit.isBodyRead = true;
  sendContinue(exchange);
  const fromTick = performance.now();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const body = new GatheredBytes();
  const giveUp = held?.giveUp;
  if (held) held.giveUp = stop;
  function onData(chunk: Buffer): void {
    body.push(chunk);
    held?.charge(BODY_WEIGHT * chunk.length);
    if (body.length > maxBytes) stop(tooLarge(maxBytes));
  }
  function stop(refusal: Refusal): void {
    req.off('data', onData).off('end', finish).off('close', leave).pause();
    leave();
    reject(refusal);
  }
  // Once the client has left, the promise never settles, and a timer would only hold the body in memory.
  const late = req.destroyed ? undefined : setTimeout(() => stop(tooSlow()), MAX_MS);
  function leave(): void {
    clearTimeout(late);
    if (held) held.giveUp = giveUp;
  }
  function finish(): void {
    leave();
    // A request that begins before the caller's access ends must not act after it.
    const isLate = performance.now() - fromTick > RECHECK_MS;
    resolve(isLate && state.recheck ? state.recheck(state).then(() => body.bytes) : body.bytes);
  }
  req.on('data', onData).once('end', finish).once('close', leave);
  return promise;
}

function tooSlow(): Refusal {
  return invalidRequest([{ path: '', message: 'must arrive within five minutes' }]);
}

/**
 * Reads the body of a request into `req.body` as bytes. A body over the endpoint's limit is a 413, over the route's own
 * `bodyLimit` a 400.
 */
export async function readBody(req: Request, _res: Response, next: NextFunction): Promise<void> {
  const exchange = exchangeOf(req);
  const { max_body_bytes = 0 } = exchange.state.endpoint ?? {};
  const limit = exchange.route?.bodyLimit;
  req.body = await (limit === undefined
    ? readBytes(exchange, max_body_bytes)
    : readBytes(exchange, limit, (maxBytes) => invalidRequest([tooLong(maxBytes)])));
  next();
}

/**
 * Parses the JSON body of a request that `readBody` has read.
 * @throws Refusal 400 for another content type, malformed UTF-8 or JSON, or JSON beyond the limits of `parseJson`.
 */
export async function jsonBody(req: Request): Promise<unknown> {
  return jsonOf(exchangeOf(req), bytesOf(req));
}

/**
 * Parses the bytes of a request's body as JSON.
 * @throws Refusal 400 as `jsonBody` does, and for a known member that is repeated.
 */
export async function jsonOf(exchange: Exchange, bytes: Buffer, known?: KnownMembers): Promise<unknown> {
  if (!isJsonType(exchange.req.headers['content-type'])) {
    throw invalidRequest([{ path: 'Content-Type', message: 'must be application/json' }]);
  }
  const rejection = ({ message }: Error) => invalidRequest([{ path: '', message }]);
  const value = await readInput(bytes, rejection, exchange.held, known);
  exchange.audit.isBodyJson = true;
  return value;
}

/** Returns the body of a request that `readBody` has read; an empty buffer when it had none. */
export function bytesOf(req: Request): Buffer {
  return Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
}
