import { errorOf, type Issue, type PortcullisError } from './errors.ts';
import { parseJson } from './json.ts';
import { backoff, pause } from './waiting.ts';

/** A request is tried for over half a minute. */
const ATTEMPTS = 7;
/** The longest time of an attempt in milliseconds. */
const ATTEMPT_MS = 60_000;
/** The longest `Retry-After` that is waited for. */
export const LONGEST_WAIT_S = 60;

export interface HttpRequest extends RequestInit {
  /** Whether sending it twice has the same effect as once. Other requests are repeated only after a 429. */
  repeatable: boolean;
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
 * @throws TypeError if there is no response.
 */
export async function send(fetcher: typeof fetch, url: string, request: HttpRequest): Promise<HttpResponse> {
  const { repeatable, ...init } = request;
  const headers = new Headers(init.headers);
  for (let attempt = 1; ; attempt += 1) {
    let waitMs = backoff(attempt - 1);
    const timeout = AbortSignal.timeout(ATTEMPT_MS);
    const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
    try {
      const response = await fetcher(url, { ...init, headers, signal, redirect: 'error' });
      const seconds = retryAfterOf(response.headers) ?? 0;
      const isRepeated = response.status === 429 || (repeatable && response.status >= 500);
      if (!isRepeated || attempt === ATTEMPTS || seconds > LONGEST_WAIT_S) return await read(response);
      await response.body?.cancel();
      waitMs = Math.max(waitMs, seconds * 1000);
    } catch (error) {
      init.signal?.throwIfAborted();
      if (!repeatable || attempt === ATTEMPTS) throw error;
    }
    await pause(waitMs, init.signal);
  }
}

/** Reads a response to its end. */
export async function read(response: Response): Promise<HttpResponse> {
  return { status: response.status, headers: response.headers, body: bodyOf(await response.text()) };
}

function bodyOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Returns the seconds of `Retry-After`, which may also be a date. */
function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('retry-after');
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Math.max(0, seconds || 0);
}

interface GraphqlExtensions {
  code?: string;
  issues?: Issue[];
  correlationId?: string;
  retryAfter?: number;
}

/** Returns the error of a response that is not a success, or of a GraphQL result with `errors`. */
export function errorIn({ status, headers, body }: HttpResponse): PortcullisError {
  // Bodies of REST, of RFC 6749, and of GraphQL.
  const { message, error, error_description: description, errors } = Object(body) as Record<string, unknown>;
  const issues = Array.isArray(errors) ? (errors as (Issue & { extensions?: GraphqlExtensions })[]) : [];
  const [first] = issues;
  const details = {
    status,
    correlationId: headers.get('x-correlation-id') ?? undefined,
    retryAfter: retryAfterOf(headers),
  };
  if (first?.extensions) {
    const inner = issues.flatMap(({ extensions }) => extensions?.issues ?? []);
    return errorOf(first.message, { ...details, code: 'GRAPHQL_ERROR', ...first.extensions, issues: inner });
  }
  const code = [error, message].find((text) => typeof text === 'string') ?? `status_${status}`;
  const reason = description ?? (first && `${[first.path].flat().join('.')} ${first.message}`);
  return errorOf(`${status} ${code}${reason ? `: ${reason}` : ''}`, { ...details, code: String(code), issues });
}
