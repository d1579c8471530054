import { type ErrorDetails, errorOf, type Issue, PortcullisError } from './errors.ts';
import { parseJson } from './json.ts';
import { backoff, inTime, linked, pause } from './waiting.ts';

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

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface HttpRequest extends CallOptions {
  headers?: Record<string, string>;
  body?: string | FormData | URLSearchParams;
  /** Whether sending it twice has the same effect as once, as for GET. Others are repeated only after a 429. */
  repeatable?: boolean;
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
 * @throws PortcullisError for a status from 400; TypeError or TimeoutError if there is no response.
 */
export async function send(
  { fetch: fetcher = fetch, retries = 6 }: Transport,
  method: string,
  url: string,
  { repeatable = method === 'GET', signal, ...request }: HttpRequest,
): Promise<HttpResponse> {
  // Invalid headers are an error of the caller, which a repetition would not help.
  const headers = new Headers(request.headers);
  if (typeof request.body === 'string') headers.set('content-type', 'application/json');
  const limitMs = request.body instanceof FormData ? UPLOAD_MS : ATTEMPT_MS;
  for (let attempt = 0; ; attempt += 1) {
    const { controller, release } = linked(signal);
    try {
      const init = { ...request, method, headers, signal: controller.signal, redirect: 'error' } as const;
      const response = await inTime(limitMs, controller, fetcher(url, init).then(read));
      if (response.status >= 400) throw errorIn(response);
      return response;
    } catch (error) {
      signal?.throwIfAborted();
      const isRepeatable = repeatable || (error instanceof PortcullisError && error.status === 429);
      const seconds = isRepeatable ? secondsUntilRetry(error) : undefined;
      if (seconds === undefined || attempt >= retries) throw error;
      await pause(Math.max(backoff(attempt), seconds * 1000), signal);
    } finally {
      release();
    }
  }
}

/** Reads a response to its end. */
export async function read(response: Response): Promise<HttpResponse> {
  return { status: response.status, headers: response.headers, body: parseJson(await response.text()) };
}

/** The codes of errors that end an event stream and not the subscription. */
const TEMPORARY: ReadonlySet<string> = new Set(['SLOW_CONSUMER', 'SERVICE_UNAVAILABLE', 'GATEWAY_TIMEOUT']);

/** Returns the seconds after which another attempt may succeed. Undefined if none would: the error is final. */
export function secondsUntilRetry(error: unknown): number | undefined {
  if (!(error instanceof PortcullisError)) {
    const isLost = error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError');
    return isLost ? 0 : undefined;
  }
  const { status, code, retryAfter = 0 } = error;
  const isTemporary = TEMPORARY.has(code) || status === 429 || status >= 500;
  return isTemporary && retryAfter <= LONGEST_WAIT_S ? retryAfter : undefined;
}

interface GraphqlError extends Issue {
  extensions?: Partial<ErrorDetails>;
}

/** The message of a GraphQL server about a variable whose type differs from the schema. */
const OF_VARIABLE = /^Variable "\$\w+" has invalid value at ([^:]+): (.+)$/s;

function issuesIn({ message, extensions }: GraphqlError): readonly Issue[] {
  const [, path, reason = ''] = OF_VARIABLE.exec(message) ?? [];
  if (path === undefined) return told(extensions?.issues);
  return [{ path: path.split(/[.[\]]+/).filter(Boolean), message: reason }];
}

/** Returns what a server says is wrong: only what has a message, with an empty path where it has none. */
function told(sent: unknown): GraphqlError[] {
  const all = [sent].flat().filter((one): one is GraphqlError => typeof Object(one).message === 'string');
  return all.map((one) => ({ ...one, path: Array.isArray(one.path) ? one.path.map(String) : String(one.path ?? '') }));
}

/** Returns the error of a response that is not a success, or of a GraphQL result with `errors`. */
export function errorIn({ status, headers, body }: HttpResponse): PortcullisError {
  // Bodies of REST, of RFC 6749, and of GraphQL; the last have no code outside of their errors.
  const { message, error, error_description: description, errors } = Object(body) as Record<string, unknown>;
  const issues = told(errors);
  const [first] = issues;
  const unnamed = first ? 'GRAPHQL_ERROR' : 'unexpected_response';
  const code = [error, message].find((text) => typeof text === 'string') ?? unnamed;
  const correlationId = headers.get('x-correlation-id') ?? undefined;
  const retryAfter = Number(headers.get('retry-after')) || undefined;
  const details = { status, code: String(code), correlationId, retryAfter };
  if (first && code === unnamed) {
    return errorOf(first.message, { ...details, ...first.extensions, issues: issues.flatMap(issuesIn) });
  }
  const reason = description ?? (first && `${[first.path].flat().join('.')} ${first.message}`.trim());
  return errorOf(`${status} ${code}${reason ? `: ${reason}` : ''}`, { ...details, issues });
}
