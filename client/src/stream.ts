import { type CallOptions, errorIn, read, secondsUntilRetry, type Transport } from './http.ts';
import { parseJson } from './json.ts';
import { backoff, inTime, linked, PROMPT_MS, pause } from './waiting.ts';

/** The longest silence of a stream. The gateway sends a ping every 12 s. */
const SILENCE_MS = 40_000;
/** The longest time until a stream is open. The gateway answers within 10 s. */
const OPENING_MS = 15_000;

/** State of a subscription's connection; `waiting` for the next attempt. */
export type ConnectionState = { state: 'connecting' | 'live' } | { state: 'waiting'; untilMs: number };

export interface SubscriptionOptions extends CallOptions {
  onState?: ((state: ConnectionState) => void) | undefined;
}

/**
 * Yields the results of a subscription over server-sent events. Connects again when the connection ends, falls silent or
 * is refused for a while, when the token expires, and after `slow_consumer`.
 * @param open requests an event stream
 * @throws PortcullisError if a new connection would not help; errors of the token source.
 */
export async function* subscribe<Result>(
  open: (signal: AbortSignal) => Promise<Response>,
  { signal, onState }: SubscriptionOptions,
): AsyncGenerator<Result, void> {
  for (let retries = 0; ; retries += 1) {
    signal?.throwIfAborted();
    onState?.({ state: 'connecting' });
    const { controller: connection, release } = linked(signal);
    const startedAt = Date.now();
    let waitMs = backoff(retries, PROMPT_MS);
    let wakes: EventTarget | undefined = globalThis;
    try {
      const response = await inTime(OPENING_MS, connection, open(connection.signal));
      onState?.({ state: 'live' });
      for await (const result of resultsOf<Result>(response, connection)) {
        signal?.throwIfAborted();
        yield result;
        retries = 0;
      }
      return;
    } catch (error) {
      signal?.throwIfAborted();
      const seconds = secondsUntilRetry(error);
      if (seconds === undefined) throw error;
      if (seconds > 0) [waitMs, wakes] = [seconds * 1000, undefined];
    } finally {
      release();
      connection.abort();
    }
    // A connection that lived longer than the pause before it was a good one.
    if (Date.now() - startedAt > waitMs) retries = 0;
    onState?.({ state: 'waiting', untilMs: Date.now() + waitMs });
    await pause(waitMs, signal, wakes);
  }
}

/** Requests an event stream. */
export async function openStream(
  { fetch: fetcher = fetch }: Transport,
  url: string,
  init: RequestInit,
): Promise<Response> {
  const response = await fetcher(url, { ...init, redirect: 'error' });
  const type = response.headers.get('content-type');
  if (response.ok && type?.startsWith('text/event-stream')) return response;
  throw errorIn(await read(response));
}

/** Yields the results of an event stream (HTML Standard, section 9.2.6), and returns when it is complete. */
async function* resultsOf<Result>(response: Response, connection: AbortController): AsyncGenerator<Result, void> {
  let event = '';
  let data: string[] = [];
  for await (const line of linesOf(response, connection)) {
    const [, field, text = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'event') event = text;
    if (field === 'data') data.push(text);
    if (line !== '') continue;
    if (event === 'complete') return;
    if (event === 'next') yield resultIn<Result>(response, data.join('\n'));
    [event, data] = ['', []];
  }
  throw new TypeError('the event stream was interrupted');
}

function resultIn<Result>({ status, headers }: Response, text: string): Result {
  const body = Object(parseJson(text)) as { data?: Result; errors?: unknown };
  if (body.errors || !body.data) throw errorIn({ status, headers, body });
  return body.data;
}

async function* linesOf({ body }: Response, connection: AbortController): AsyncGenerator<string, void> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let line = '';
  let text = '';
  while (reader) {
    const { done, value } = await inTime(SILENCE_MS, connection, reader.read());
    if (done) return;
    const isInsideLineEnd = text.endsWith('\r');
    text = decoder.decode(value, { stream: true });
    const [first = '', ...others] = (isInsideLineEnd ? text.replace(/^\n/, '') : text).split(/\r\n?|\n/);
    // Appending is cheap, however many chunks a line has.
    line += first;
    for (const other of others) {
      yield line;
      line = other;
    }
  }
}
