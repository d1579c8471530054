import { PortcullisError } from './errors.ts';
import { errorIn, LONGEST_WAIT_S, read } from './http.ts';
import { parseJson } from './json.ts';
import { backoff, pause } from './waiting.ts';

/** The longest silence of a stream. The gateway sends a ping every 12 s. */
const SILENCE_MS = 40_000;

/** State of a subscription's connection; `waiting` for the next attempt. */
export type ConnectionState = { state: 'connecting' | 'live' } | { state: 'waiting'; untilMs: number };

export interface SubscriptionOptions {
  signal?: AbortSignal | undefined;
  onState?: ((state: ConnectionState) => void) | undefined;
}

/** Requests an event stream. `rejected` is a token that got a 401: send another. */
export type OpenStream = (
  signal: AbortSignal,
  rejected: string | undefined,
) => Promise<{ response: Response; token: string }>;

/** The connection ended before the subscription did: connect again. */
class Interrupted extends Error {}

/** The codes of errors that end a connection and not the subscription. */
const TEMPORARY: ReadonlySet<string> = new Set(['SLOW_CONSUMER', 'SERVICE_UNAVAILABLE', 'GATEWAY_TIMEOUT']);

/** Returns the seconds after which a new connection may help. Undefined if none would: the error is final. */
function secondsUntilRetry(error: unknown): number | undefined {
  if (!(error instanceof PortcullisError))
    return error instanceof Interrupted || error instanceof TypeError ? 0 : undefined;
  const { status, code, retryAfter = 0 } = error;
  const isTemporary = TEMPORARY.has(code) || status === 429 || status >= 500;
  return isTemporary && retryAfter <= LONGEST_WAIT_S ? retryAfter : undefined;
}

/**
 * Yields the results of a subscription over server-sent events. Connects again when the connection ends, falls silent or
 * is refused for a while, when the token expires, and after `slow_consumer`.
 * @throws PortcullisError if a new connection would not help; errors of the token source.
 */
export async function* subscribe<Result>(
  open: OpenStream,
  { signal, onState }: SubscriptionOptions,
): AsyncGenerator<Result, void> {
  let rejected: string | undefined;
  for (let retries = 0; ; retries += 1) {
    signal?.throwIfAborted();
    onState?.({ state: 'connecting' });
    const connection = new AbortController();
    const stop = () => connection.abort(signal?.reason);
    signal?.addEventListener('abort', stop, { once: true });
    let waitMs = backoff(retries);
    const startedAt = Date.now();
    const silence = setTimeout(() => connection.abort(new Interrupted()), SILENCE_MS);
    try {
      const { response, token } = await open(connection.signal, rejected);
      clearTimeout(silence);
      if (response.status === 401 && rejected === undefined) {
        rejected = token;
        continue;
      }
      rejected = undefined;
      const results = resultsOf<Result>(response, connection);
      await results.next();
      onState?.({ state: 'live' });
      for await (const result of results) {
        signal?.throwIfAborted();
        if (result !== undefined) yield result;
        retries = 0;
      }
      return;
    } catch (error) {
      signal?.throwIfAborted();
      const seconds = secondsUntilRetry(error);
      if (seconds === undefined) throw error;
      waitMs = Math.max(waitMs, seconds * 1000);
    } finally {
      clearTimeout(silence);
      signal?.removeEventListener('abort', stop);
      connection.abort();
    }
    // A connection that lived longer than the pause before it was a good one.
    if (Date.now() - startedAt > waitMs) retries = 0;
    onState?.({ state: 'waiting', untilMs: Date.now() + waitMs });
    await pause(waitMs, signal);
  }
}

/** Yields undefined when the stream is open, then its results. Returns when it is complete. */
async function* resultsOf<Result>(response: Response, connection: AbortController): AsyncGenerator<Result | undefined> {
  const { status, headers, body } = response;
  if (!body || !headers.get('content-type')?.startsWith('text/event-stream')) {
    throw errorIn(await read(response));
  }
  yield undefined;
  for await (const { event, data } of eventsOf(body, connection)) {
    if (event === 'complete') return;
    if (event !== 'next') continue;
    const result = parseJson(data) as { data?: Result; errors?: unknown };
    if (result.errors) throw errorIn({ status, headers, body: result });
    yield result.data;
  }
  throw new Interrupted();
}

/** Parses server-sent events (HTML Standard, section 9.2.6). Aborts the connection if nothing arrives for too long. */
async function* eventsOf(body: ReadableStream<Uint8Array>, connection: AbortController) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let event = '';
  let data: string[] = [];
  while (true) {
    const silence = setTimeout(() => connection.abort(new Interrupted()), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, field, text = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (field === 'event') event = text;
      else if (field === 'data') data.push(text);
      else if (line === '' && (event !== '' || data.length > 0)) yield { event, data: data.join('\n') };
      if (line === '') [event, data] = ['', []];
    }
  }
}
