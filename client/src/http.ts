import { errorOf, type Issue, type PortcullisError } from './errors.ts';
import { parseJson } from './json.ts';
import { backoff, pause } from './waiting.ts';

/** A request is tried for over half a minute. */
const ATTEMPTS = 7;
/** The longest `Retry-After` that is waited for. */
const LONGEST_WAIT_S = 60;

export interface HttpRequest extends RequestInit {
  /** Whether sending it twice has the same effect as once. Other requests are repeated only after a 429 or 503. */
  repeatable: boolean;
}

export interface HttpResponse {
  status: number;
  headers: Headers;
  /** The parsed JSON; undefined if the body is empty or not JSON. */
  body: unknown;
}

/**
 * Sends a request. Repeats it after 429 and 503 when `Retry-After` says, and a repeatable one also after other failures
 * of the gateway or the network, with increasing pauses.
 * @throws TypeError if there is no response.
 */
export async function send(fetcher: typeof fetch, url: string, request: HttpRequest): Promise<HttpResponse> {
  const { repeatable, ...init } = request;
  for (let attempt = 1; ; attempt += 1) {
    let waitMs = backoff(attempt - 1);
    try {
      const response = await fetcher(url, { ...init, redirect: 'error' });
      const { status, headers } = response;
      const seconds = retryAfterOf(headers) ?? 0;
      const isRepeated = status === 429 || status === 503 || (repeatable && status >= 500);
      if (!isRepeated || attempt === ATTEMPTS || seconds > LONGEST_WAIT_S) {
        return { status, headers, body: bodyOf(await response.text()) };
      }
      waitMs = Math.max(waitMs, seconds * 1000);
    } catch (error) {
      init.signal?.throwIfAborted();
      if (!repeatable || attempt === ATTEMPTS) throw error;
    }
    await pause(waitMs, init.signal);
  }
}

function bodyOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function retryAfterOf(headers: Headers): number | undefined {
  const seconds = headers.get('retry-after');
  return seconds === null ? undefined : Number(seconds) || 0;
}

/** The members of error bodies: of REST, of RFC 6749, and of GraphQL. */
interface ErrorBody {
  message?: string;
  error_description?: string;
  errors?: readonly { message: string; path?: unknown; extensions?: GraphqlExtensions }[];
}

interface GraphqlExtensions {
  code?: string;
  issues?: Issue[];
  correlationId?: string;
  retryAfter?: number;
}

/** Returns the error of a response that is not a success, or of a GraphQL result with `errors`. */
export function errorIn({ status, headers, body }: HttpResponse): PortcullisError {
  const { message, error_description: description, errors = [] } = (body ?? {}) as ErrorBody;
  const [first] = errors;
  const correlationId = headers.get('x-correlation-id') ?? undefined;
  const retryAfter = retryAfterOf(headers);
  if (first?.extensions) {
    const issues = errors.flatMap(({ extensions }) => extensions?.issues ?? []);
    return errorOf(first.message, {
      status,
      code: 'GRAPHQL_ERROR',
      correlationId,
      retryAfter,
      ...first.extensions,
      issues,
    });
  }
  const code = message ?? `status_${status}`;
  const reason = description ?? (first && `${[first.path].flat().join('.')} ${first.message}`);
  const issues = errors as Issue[];
  return errorOf(`${status} ${code}${reason ? `: ${reason}` : ''}`, {
    status,
    code,
    correlationId,
    retryAfter,
    issues,
  });
}
