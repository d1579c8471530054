import { errorOf, type Issue, type PortcullisError } from './errors.ts';
import { parseJson } from './json.ts';
import { backoff, pause } from './waiting.ts';

/** With the pauses between them, over half a minute. */
export const RETRIES = 6;
/** The longest time of an attempt in milliseconds. */
const ATTEMPT_MS = 60_000;
/** The longest `Retry-After` that is waited for. */
export const LONGEST_WAIT_S = 60;

export interface HttpRequest extends RequestInit {
  /** Whether sending it twice has the same effect as once. Other requests are repeated only after a 429. */
  repeatable: boolean;
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
 * @throws TypeError if there is no response.
 */
export async function send(fetcher: typeof fetch, url: string, request: HttpRequest): Promise<HttpResponse> {
  const { repeatable, retries, ...init } = request;
  const headers = new Headers(init.headers);
  for (let attempt = 0; ; attempt += 1) {
    let waitMs = backoff(attempt);
    try {
      const response = await fetcher(url, { ...init, headers, signal: limited(init), redirect: 'error' });
      const seconds = retryAfterOf(response.headers) ?? 0;
      const isRepeated = response.status === 429 || (repeatable && response.status >= 500);
      if (!isRepeated || attempt >= retries || seconds > LONGEST_WAIT_S) return await read(response);
      await response.body?.cancel();
      waitMs = Math.max(waitMs, seconds * 1000);
    } catch (error) {
      init.signal?.throwIfAborted();
      if (!repeatable || attempt >= retries) throw error;
    }
    await pause(waitMs, init.signal);
  }
}

/** Returns the signal of an attempt. An upload has no time limit. */
function limited({ body, signal }: RequestInit): AbortSignal | null {
  const signals = signal ? [signal] : [];
  if (!(body instanceof FormData)) signals.push(AbortSignal.timeout(ATTEMPT_MS));
  return AbortSignal.any(signals);
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

interface GraphqlError {
  message: string;
  extensions?: { code?: string; issues?: Issue[]; correlationId?: string; retryAfter?: number; permission?: string };
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
    retryAfter: retryAfterOf(headers),
  };
  if (first?.extensions) {
    return errorOf(first.message, {
      ...details,
      code: 'GRAPHQL_ERROR',
      ...first.extensions,
      issues: issues.flatMap(issuesIn),
    });
  }
  const code = [error, message].find((text) => typeof text === 'string') ?? `status_${status}`;
  const reason = description ?? (first && `${[first.path].flat().join('.')} ${first.message}`);
  return errorOf(`${status} ${code}${reason ? `: ${reason}` : ''}`, { ...details, code: String(code), issues });
}
