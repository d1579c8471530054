import { type ErrorDetails, errorOf, type Issue, NoResponseError, PortcullisError } from './errors.ts';
import { parseJson } from './json.ts';
import { backoff, inTime, isTimeout, linked, pause } from './waiting.ts';

/** The longest times of an attempt in milliseconds. */
const ATTEMPT_MS = 60_000;
const UPLOAD_MS = 3_600_000;
/** The longest `Retry-After` that is waited for. */
const LONGEST_WAIT_S = 60;

export interface Transport {
  /** How often a request is repeated at most: 6 times, for over half a minute, by default. */
  retries?: number;
  fetch?: typeof fetch;
}

/** How a request is sent. */
interface Sending extends Transport {
  /** The longest pause before a repetition, unless the gateway asks for a longer one. */
  longestPauseMs?: number;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface HttpRequest extends CallOptions {
  headers?: Record<string, string>;
  body?: string | FormData | URLSearchParams;
  /** Whether it changes nothing, as GET. */
  isRead?: boolean;
  /** Whether sending it twice has the same effect as once, as for a read. Others are repeated only after a 429. */
  repeatable?: boolean;
  /** Returns more headers for each attempt. */
  signed?: () => Promise<Record<string, string>>;
  /** A status from 400 that is no error. */
  expected?: number;
}

export interface HttpResponse {
  status: number;
  headers: Headers;
  /** The parsed JSON; undefined if the body is empty or not JSON. */
  body: unknown;
}

/**
 * Sends a request. Repeats it after 429 when `Retry-After` says, and a repeatable one also after other failures of the
 * gateway or the network, with growing pauses.
 * @throws PortcullisError for a status from 400; NoResponseError; the signal's reason if nothing can have been applied.
 */
export async function send(
  { fetch: fetcher = fetch, retries = 6, longestPauseMs }: Sending,
  method: string,
  url: string,
  { isRead = method === 'GET', repeatable = isRead, signal, signed, expected, ...request }: HttpRequest,
): Promise<HttpResponse> {
  // Invalid headers are an error of the caller, which a repetition would not help.
  const headers = new Headers(request.headers);
  if (typeof request.body === 'string') headers.set('content-type', 'application/json');
  const limitMs = request.body instanceof FormData ? UPLOAD_MS : ATTEMPT_MS;
  const idempotencyKey = headers.get('idempotency-key') ?? undefined;
  let mayHaveBeenApplied = false;
  function failure(cause: unknown): unknown {
    if (signal?.aborted && !mayHaveBeenApplied) return signal.reason;
    const code = signal?.aborted ? 'aborted' : isTimeout(cause) ? 'timeout' : 'no_response';
    const error = cause instanceof PortcullisError ? cause : new NoResponseError(cause, code);
    return Object.assign(error, { mayHaveBeenApplied, idempotencyKey });
  }
  for (let attempt = 0; ; attempt += 1) {
    for (const [name, value] of Object.entries((await signed?.()) ?? {})) headers.set(name, value);
    const { controller, release } = linked(signal);
    try {
      const init = { ...request, method, headers, signal: controller.signal, redirect: 'error' } as const;
      const response = await inTime(limitMs, controller, fetcher(url, init).then(read));
      if (response.status >= 400 && response.status !== expected) throw errorIn(response);
      return response;
    } catch (cause) {
      mayHaveBeenApplied ||= !isRead && mayBeApplied(cause);
      const isRepeatable = repeatable || (cause instanceof PortcullisError && cause.status === 429);
      const seconds = isRepeatable ? secondsUntilRetry(cause) : undefined;
      if (signal?.aborted || seconds === undefined || attempt >= retries) throw failure(cause);
      await pause(Math.max(backoff(attempt, longestPauseMs), seconds * 1000), signal).catch((reason) => {
        throw failure(reason);
      });
    } finally {
      release();
    }
  }
}

/** Reads a response to its end. */
export async function read(response: Response): Promise<HttpResponse> {
  return { status: response.status, headers: response.headers, body: parseJson(await response.text()) };
}

/** Whether the gateway may have executed a write that failed. */
export function mayBeApplied(error: unknown): boolean {
  if (error instanceof PortcullisError) return error.status >= 500 || UNCERTAIN.has(error.code);
  // Node says that no connection was made; browsers do not.
  const { cause } = Object(error);
  const { syscall, code } = Object(cause?.errors?.[0] ?? cause);
  return syscall !== 'connect' && syscall !== 'getaddrinfo' && code !== 'UND_ERR_CONNECT_TIMEOUT';
}

/** The codes of GraphQL that are a status from 500 in REST. */
const UNCERTAIN: ReadonlySet<string> = new Set(['INTERNAL_SERVER_ERROR', 'SERVICE_UNAVAILABLE', 'GATEWAY_TIMEOUT']);

/** The codes of errors that end an event stream and not the subscription. */
const TEMPORARY: ReadonlySet<string> = new Set(['SLOW_CONSUMER', 'SERVICE_UNAVAILABLE', 'GATEWAY_TIMEOUT']);

/** Returns the seconds after which another attempt may succeed. Undefined if none would: the error is final. */
export function secondsUntilRetry(error: unknown): number | undefined {
  if (!(error instanceof PortcullisError)) return error instanceof TypeError || isTimeout(error) ? 0 : undefined;
  const { status, code, retryAfter = 0 } = error;
  const isTemporary = TEMPORARY.has(code) || status === 429 || status >= 500 || status === 0;
  return isTemporary && retryAfter <= LONGEST_WAIT_S ? retryAfter : undefined;
}

interface GraphqlError extends Issue {
  extensions?: Partial<ErrorDetails>;
}

/** The message of a GraphQL server about a variable whose type differs from the schema. */
const OF_VARIABLE = /^Variable "\$\w+" has invalid value at ([^:]+): (.+)$/s;

function issuesIn({ message, extensions }: GraphqlError): readonly Issue[] {
  const [, path, reason = ''] = OF_VARIABLE.exec(message) ?? [];
  if (path === undefined) return parseIssues(extensions?.issues);
  return [{ path: path.split(/[.[\]]+/).filter(Boolean), message: reason }];
}

/** Returns what a server says is wrong: only what has a message, with an empty path where it has none. */
function parseIssues(sent: unknown): GraphqlError[] {
  const all = [sent].flat().filter((one): one is GraphqlError => typeof Object(one).message === 'string');
  return all.map((one) => ({ ...one, path: Array.isArray(one.path) ? one.path.map(String) : String(one.path ?? '') }));
}

/** Returns the parameters of `WWW-Authenticate` (RFC 9110 section 11.2) by their names in lower case. */
function challengeIn(text: string): Readonly<Record<string, string | undefined>> {
  const all = [...text.matchAll(/([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)];
  return Object.fromEntries(
    all.map(([, name = '', quoted, token]) => [name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? token]),
  );
}

/** Returns the seconds that `Retry-After` asks for: a number, or until a date by the clock of the response, or else ours. */
function retryAfterIn(headers: Headers): number | undefined {
  const text = headers.get('retry-after') ?? '';
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text);
  // A date of the oldest form (asctime) does not name its zone.
  const untilMs = /^[A-Z][a-z]+,? /.test(text) ? Date.parse(text.replace(/(?: GMT)?$/, ' GMT')) : Number.NaN;
  const nowMs = Date.parse(headers.get('date') ?? '') || Date.now();
  return Number.isNaN(untilMs) ? undefined : Math.max(0, Math.ceil((untilMs - nowMs) / 1000));
}

/** Returns the error of a response that is not a success, or of a GraphQL result with `errors`. */
export function errorIn({ status, headers, body }: HttpResponse): PortcullisError {
  // Bodies of REST, of RFC 6749, and of GraphQL; the last have no code outside of their errors.
  const { message, error, error_description: description, errors } = Object(body) as Record<string, unknown>;
  const issues = parseIssues(errors);
  const [first] = issues;
  const unnamed = first ? 'GRAPHQL_ERROR' : 'unexpected_response';
  const code = [error, message].find((text) => typeof text === 'string') ?? unnamed;
  const correlationId = headers.get('x-correlation-id') ?? undefined;
  const { error: denial, scope: permission } = challengeIn(headers.get('www-authenticate') ?? '');
  const permitted = denial === 'insufficient_scope' ? { permission } : {};
  const details = { status, code: String(code), correlationId, retryAfter: retryAfterIn(headers), ...permitted };
  if (first && code === unnamed) {
    return errorOf(first.message, { ...details, ...first.extensions, issues: issues.flatMap(issuesIn) });
  }
  const reason = description ?? (first && `${[first.path].flat().join('.')} ${first.message}`.trim());
  return errorOf(`${status} ${code}${reason ? `: ${reason}` : ''}`, { ...details, issues });
}
