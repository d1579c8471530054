import type { ServerResponse } from 'node:http';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { Log } from '../../lib/log.ts';
import { runCooperatively, SLICE_LENGTH } from '../../lib/yielding.ts';
import { invalidRequest, Refusal } from '../../platform/errors.ts';
import { heldMemory } from '../../platform/held-memory.ts';
import type { Endpoint } from '../endpoints/gateway-config.ts';
import { announcesBody } from './capture.ts';
import type { Exchange } from './exchange.ts';
import { type ErrorEnvelope, errorEnvelope, reasonOf, refusalHeaders, statusOf } from './refusals.ts';

const MAX_BYTES = 64 * 1024 * 1024;
const MAX_MS = 5_000;

/**
 * Lets a client still read the response when its connection is closed before its request body has arrived (RFC 9112
 * section 9.6): closes the sending side first, and the rest when the client stops sending, or after 64 MiB or 5 s.
 * Closing at once, with bytes unread, would reset the connection and could lose the response.
 */
export function lingerOnClose({ req, res }: Exchange): void {
  const { socket } = req;
  const destroySoon = socket.destroySoon;
  socket.destroySoon = lingerOrDestroy;
  res.once('close', () => {
    socket.destroySoon = destroySoon;
  });

  function lingerOrDestroy(): void {
    if (req.complete) destroySoon.call(socket);
    else linger();
  }

  function linger(): void {
    const cut = setTimeout(() => socket.destroy(), MAX_MS);
    socket.once('close', () => clearTimeout(cut));
    socket.end();
    let bytes = 0;
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) socket.destroy();
    });
    req.once('end', () => socket.destroy());
    req.resume();
  }
}

/** How long a client may pause reading a long response, in milliseconds. */
const MAX_PAUSE_MS = 60_000;

/**
 * Sends the body of a response in pieces. After each, the event loop runs other work and other callers have their turns.
 * The next one is made only when the connection has room for it, so that a client that reads slowly holds no more than
 * one. A client that stops reading is disconnected, because the rows of the response count against its tenant.
 */
export async function sendPieces(
  res: ServerResponse,
  pieces: Iterable<string | Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  if (res.destroyed) return;
  for await (const piece of pieces) {
    if (!res.write(piece)) await roomIn(res);
    await nextTick();
    await runCooperatively(() => undefined, heldMemory()?.unstoppable);
    if (res.destroyed) return;
  }
  res.end();
}

// Replaces `pipeline`, whose listeners hold the pieces for as long as the connection is kept alive.
function roomIn(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => res.destroy(), MAX_PAUSE_MS);
    const settle = () => {
      clearTimeout(cut);
      res.off('drain', settle).off('close', settle);
      resolve();
    };
    res.once('drain', settle).once('close', settle);
  });
}

/** Sends a text or bytes as the body of a response: a long one in pieces. */
export async function sendBody(res: ServerResponse, body: string | Buffer): Promise<void> {
  if (body.length <= SLICE_LENGTH) res.end(body);
  else await sendPieces(res, piecesOf(Buffer.from(body)));
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += SLICE_LENGTH) yield bytes.subarray(from, from + SLICE_LENGTH);
}

/** Sends a status and a value as JSON. */
export function sendJson(res: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', Buffer.byteLength(text));
  res.end(text);
}

/**
 * Answers a request with an error. Logs an unexpected error once, with the correlation id, and answers it with a masked
 * 500. Cuts off a response that has begun.
 */
export function refuse(
  exchange: Exchange,
  error: unknown,
  log: Log,
  envelopeOf: (refusal: Refusal) => ErrorEnvelope = errorEnvelope,
): void {
  const { req, res } = exchange;
  if (exchange.isBroken && exchange.isAnswered && isLate(error)) return;
  const refusal = refusalOf(exchange.state.endpoint, error);
  const status = statusOf(refusal);
  exchange.audit.reason = reasonOf(refusal);
  exchange.audit.named = refusal.details;
  if (status >= 500) logFailure(exchange, error, log);
  // A complete response stays as it is.
  if (exchange.audit.capture.isEnded) return;
  if (res.headersSent) {
    res.destroy();
    return;
  }
  // For a challenge of HTTP Basic the browser would show its own window, not the error of the page that makes the
  // request (Fetch Metadata, `Sec-Fetch-Site`, which only browsers send; `none` is a request by the user).
  const isOfPage = (req.headers['sec-fetch-site'] ?? 'none') !== 'none';
  for (const [name, value] of Object.entries(refusalHeaders(refusal)))
    if (!value.startsWith('Basic ') || !isOfPage) res.setHeader(name, value);
  if (!req.complete && announcesBody(req)) {
    res.setHeader('Connection', 'close');
    lingerOnClose(exchange);
  }
  const envelope = envelopeOf(refusal);
  if (exchange.route?.oauthErrors) delete envelope.errors;
  sendJson(res, status, envelope);
}

/** Checks whether an error occurred only because the request was refused meanwhile. */
function isLate(error: unknown): boolean {
  return error instanceof Refusal
    ? statusOf(error) < 500
    : error instanceof Error && 'code' in error && error.code === 'ERR_HTTP_HEADERS_SENT';
}

/**
 * Returns the refusal to answer an error with. For an endpoint with `statuses: closed`, a 413 becomes a 400 and
 * every 5xx a 500.
 */
function refusalOf(endpoint: Endpoint | undefined, error: unknown): Refusal {
  const refusal = error instanceof Refusal ? error : new Refusal('internal_error', { cause: error });
  if (endpoint?.statuses !== 'closed') return refusal;
  if (refusal.code === 'payload_too_large') return invalidRequest(refusal.details.issues ?? []);
  return statusOf(refusal) > 500 ? new Refusal('internal_error', { cause: refusal.cause }) : refusal;
}

function logFailure(exchange: Exchange, error: unknown, log: Log): void {
  const cause = error instanceof Refusal ? error.cause : error;
  if (cause === undefined) return;
  const { correlationId, req, state, span } = exchange;
  const fields = { correlation_id: correlationId, method: req.method, path: state.endpoint?.path, err: cause };
  log.error(span ? { trace_id: span.traceId, ...fields } : fields, 'request failed');
}
