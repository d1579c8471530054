import type { Exchange } from './exchange.ts';

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** Named, since `*` leaves out Authorization (Fetch standard, section 3.3.3). */
const REQUEST_HEADERS = [
  'authorization',
  'content-type',
  'x-target-server',
  'x-correlation-id',
  'idempotency-key',
  'if-match',
  'mcp-session-id',
  'mcp-protocol-version',
  'last-event-id',
].join(', ');

const windows = ['', '-Second', '-Minute', '-Hour'];
const EXPOSED_HEADERS = [
  'X-Correlation-ID',
  'WWW-Authenticate',
  'Retry-After',
  'Location',
  'ETag',
  ...['Limit', 'Remaining', 'Reset'].flatMap((name) => windows.map((window) => `X-Ratelimit-${name}${window}`)),
  'X-MonthlyLimit-Limit',
  'X-MonthlyLimit-Remaining',
  'X-MonthlyLimit-Reset',
].join(', ');

/** Sets the CORS headers of every answer, errors too; without credentials. */
export function cors(origins: readonly string[]): (exchange: Exchange) => void {
  const any = origins.includes('*');
  const allowed = new Set(origins);
  return function setCors({ req, res }: Exchange): void {
    const { origin } = req.headers;
    if (any) res.setHeader('Access-Control-Allow-Origin', '*');
    else {
      res.setHeader('Vary', 'Origin');
      if (origin === undefined || !allowed.has(origin)) return;
      res.setHeader('Access-Control-Allow-Origin', origin);
    }
    res.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
  };
}

/** Answers a preflight request (OPTIONS on any path). */
export function answerPreflight({ res }: Exchange): void {
  res.setHeader('Access-Control-Allow-Methods', METHODS);
  res.setHeader('Access-Control-Allow-Headers', REQUEST_HEADERS);
  res.setHeader('Access-Control-Max-Age', '600');
  res.statusCode = 204;
  res.end();
}
