import { type ErrorDetails, errorOf, type Issue, PortcullisError } from './errors.ts';
import { parseJson } from './json.ts';
import { backoff, pause } from './waiting.ts';

/** With the pauses between them, over half a minute. */
export const RETRIES = 6;
/** The longest time of an attempt in milliseconds. */
const ATTEMPT_MS = 60_000;
/** The longest `Retry-After` that is waited for. */
const LONGEST_WAIT_S = 60;

export interface HttpRequest extends RequestInit {
  /** Whether sending it twice has the same effect as once, as for GET. Others are repeated only after a 429. */
  repeatable?: boolean;
  retries: number;
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
export async function send(fetcher: typeof fetch, url: string, request: HttpRequest): Promise<HttpResponse> {
  const { repeatable = request.method === 'GET', retries, ...init } = request;
  // Invalid headers are an error of the caller, which a repetition would not help.
  const headers = new Headers(init.headers);
  if (typeof init.body === 'string') headers.set('content-type', 'application/json');
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await read(await fetcher(url, { ...init, headers, signal: limited(init), redirect: 'error' }));
      if (response.status >= 400) throw errorIn(response);
      return response;
    } catch (error) {
      init.signal?.throwIfAborted();
      const seconds = repeatable || isRateLimited(error) ? secondsUntilRetry(error) : undefined;
      if (seconds === undefined || attempt >= retries) throw error;
      await pause(Math.max(backoff(attempt), seconds * 1000), init.signal);
    }
  }
}

/** Returns the signal of an attempt. An upload has no time limit. */
function limited({ body, signal }: RequestInit): AbortSignal {
  const signals = signal ? [signal] : [];
  if (!(body instanceof FormData)) signals.push(AbortSignal.timeout(ATTEMPT_MS));
  return AbortSignal.any(signals);
}

/** Reads a response to its end. */
export async function read(response: Response): Promise<HttpResponse> {
  const { status, headers } = response;
  const text = await response.text();
  try {
    return { status, headers, body: parseJson(text) };
  } catch {
    return { status, headers, body: undefined };
  }
}

function isRateLimited(error: unknown): boolean {
  return error instanceof PortcullisError && error.status === 429;
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

interface GraphqlError {
  message: string;
  extensions?: Partial<ErrorDetails>;
}

/** The message of a GraphQL server about a variable whose type differs from the schema. */
const OF_VARIABLE = /^Variable "\$\w+" has invalid value at ([^:]+): (.+)$/s;

function issuesIn({ message, extensions }: GraphqlError): readonly Issue[] {
  const [, path, reason = ''] = OF_VARIABLE.exec(message) ?? [];
  if (path === undefined) return extensions?.issues ?? [];
  return [{ path: path.split(/[.[\]]+/).filter(Boolean), message: reason }];
}

/** Returns the error of a response that is not a success, or of a GraphQL result with `errors`. */
export function errorIn({ status, headers, body }: HttpResponse): PortcullisError {
  // Bodies of REST, of RFC 6749, and of GraphQL.
  const { message, error, error_description: description, errors } = Object(body) as Record<string, unknown>;
  const issues = Array.isArray(errors) ? (errors as (Issue & GraphqlError)[]) : [];
  const [first] = issues;
  const details = {
    status,
    correlationId: headers.get('x-correlation-id') ?? undefined,
    retryAfter: Number(headers.get('retry-after')) || undefined,
  };
  if (first?.extensions) {
    const inner = issues.flatMap(issuesIn);
    return errorOf(first.message, { code: 'GRAPHQL_ERROR', ...details, ...first.extensions, issues: inner });
  }
  const code = [error, message].find((text) => typeof text === 'string') ?? `status_${status}`;
  const reason = description ?? (first && `${[first.path].flat().join('.')} ${first.message}`);
  return errorOf(`${status} ${code}${reason ? `: ${reason}` : ''}`, { ...details, code: String(code), issues });
}
