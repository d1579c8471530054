import type { IncomingRequest } from './exchange/exchange.ts';

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** Listed, since `*` excludes Authorization (Fetch standard, section 3.3.3). */
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

/** Creates the function that sets the CORS headers of every response, errors included; credentials are not allowed. */
export function cors(origins: readonly string[]): (request: IncomingRequest) => void {
  const any = origins.includes('*');
  const allowed = new Set(origins);
  return function setCors({ req, res }: IncomingRequest): void {
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
export function answerPreflight({ res }: IncomingRequest): void {
  res.setHeader('Access-Control-Allow-Methods', METHODS);
  res.setHeader('Access-Control-Allow-Headers', REQUEST_HEADERS);
  res.setHeader('Access-Control-Max-Age', '600');
  res.statusCode = 204;
  res.end();
}
