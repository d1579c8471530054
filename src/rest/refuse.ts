import { AppError, invalidRequest } from '../errors/app-error.ts';
import { type ErrorEnvelope, errorEnvelope } from '../errors/envelope.ts';
import type { Exchange } from '../gateway/exchange.ts';
import { announcesBody } from '../gateway/head.rules.ts';
import type { Log } from '../lib/log.ts';
import { lingerOnClose } from './lingering-close.ts';
import { sendJson } from './send.ts';

/** Its envelope has exactly three members, whoever refuses (specification section 4.1). */
const TOKEN_PATH = '/v2/oauth/token';

/**
 * Answers a request with the refusal that an error stands for. An unexpected error is logged once, with the
 * correlation id, and answered as a masked 500. An answer that has begun is cut off.
 */
export function refuse(
  exchange: Exchange,
  error: unknown,
  log: Log,
  envelopeOf: (refusal: AppError) => ErrorEnvelope = errorEnvelope,
): void {
  const { req, res } = exchange;
  if (exchange.isBroken && exchange.isAnswered && isLate(error)) return;
  const refusal = refusalOf(exchange, error);
  if (refusal.status >= 500) logFault(exchange, error, log);
  // An answer that is complete stays what it is.
  if (exchange.capture.isEnded) return;
  if (res.headersSent) {
    res.destroy();
    return;
  }
  for (const [name, value] of Object.entries(refusal.headers)) res.setHeader(name, value);
  if (!req.complete && announcesBody(req)) {
    res.setHeader('Connection', 'close');
    lingerOnClose(exchange);
  }
  const envelope = envelopeOf(refusal);
  if (req.url?.split('?', 1)[0] === TOKEN_PATH) delete envelope.errors;
  sendJson(res, refusal.status, envelope);
}

/** Whether an error comes of nothing but that the request has been refused meanwhile. */
function isLate(error: unknown): boolean {
  if (error instanceof AppError) return error.status < 500;
  return error instanceof Error && 'code' in error && error.code === 'ERR_HTTP_HEADERS_SENT';
}

/** The refusal of an error: senders of endpoints with closed statuses know no 413 and of the 5xx only 500. */
function refusalOf(exchange: Exchange, error: unknown): AppError {
  const refusal = error instanceof AppError ? error : new AppError(500, 'internal_error', { cause: error });
  const { endpoint } = exchange.match ?? {};
  if (endpoint?.statuses !== 'closed') return refusal;
  if (refusal.status === 413) {
    return invalidRequest([{ path: '', message: `must be at most ${endpoint.max_body_bytes} bytes` }]);
  }
  if (refusal.status > 500) return new AppError(500, 'internal_error', { cause: refusal.cause });
  return refusal;
}

function logFault(exchange: Exchange, error: unknown, log: Log): void {
  const cause = error instanceof AppError ? error.cause : error;
  if (cause === undefined) return;
  const { correlationId, req, match, span } = exchange;
  const fields = { correlation_id: correlationId, method: req.method, path: match?.endpoint.path, err: cause };
  log.error(span ? { trace_id: span.traceId, ...fields } : fields, 'request failed');
}
