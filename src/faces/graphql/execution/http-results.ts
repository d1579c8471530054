import type { ServerResponse } from 'node:http';
import type { ExecutionResult, GraphQLError } from 'graphql';
import type { FetchAPI, Plugin } from 'graphql-yoga';
import { StreamStoppedError } from '../../../events/streams/stream-errors.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import { ResultStream } from '../../../lib/fast/result-stream.ts';
import type { OperationAudits } from './audit-masking.ts';
import { type ErrorMask, formatted } from './error-masking.ts';
import type { OperationRequest } from './runtime.ts';
import { ownBytes, sharedOf } from './shared-results.ts';

const SSE = 'text/event-stream';
const JSON_TYPE = 'application/json';
const RESPONSE_TYPE = 'application/graphql-response+json';
/** The media types of an Accept header that are answered with JSON. */
const TAKES_JSON: ReadonlySet<string> = new Set([JSON_TYPE, RESPONSE_TYPE, '*/*', 'application/*']);
const DOCUMENT_FAULTS: ReadonlySet<unknown> = new Set([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'OPERATION_RESOLUTION_FAILURE',
]);

/**
 * Creates the Yoga plugin that renders results as JSON or as an event stream, with the status that their errors
 * require.
 */
export function useHttpResults(
  mask: ErrorMask,
  streams: SseStreams,
  audits: OperationAudits,
): Plugin<OperationRequest, OperationRequest> {
  const subscriptions = new WeakMap<Exchange, ResultStream>();
  return {
    // Yoga would wrap the stream in one of its own, so the original is stored.
    onSubscribe: ({ args }) => ({
      onSubscribeResult({ result }) {
        if (result instanceof ResultStream) subscriptions.set(args.contextValue.exchange, result);
      },
    }),
    onResultProcess({ request, result, setResultProcessor, serverContext: { exchange } }) {
      const accepted = mediaTypes(request.headers.get('accept') ?? '*/*');
      const render = (fetchAPI: FetchAPI): Response => {
        if (Array.isArray(result)) {
          const texts = result.map((one) => textOfResult(mask.result(one, exchange)));
          audits.answered(exchange, texts);
          return json(fetchAPI, 200, `[${texts.join(',')}]`, accepted);
        }
        if (Symbol.asyncIterator in result) {
          return streamed(fetchAPI, subscriptions.get(exchange) ?? result[Symbol.asyncIterator]());
        }
        const masked = mask.result(result, exchange);
        const status = statusOf(masked, accepted);
        if (status === 200 && accepted[0] === SSE) return streamed(fetchAPI, once(masked));
        return json(fetchAPI, status, textOfResult(masked), accepted, masked.errors);
      };
      const streamed = (fetchAPI: FetchAPI, results: AsyncIterator<ExecutionResult>) => {
        if (accepted.includes(SSE) || accepted.includes('*/*')) {
          return streams.respond(fetchAPI, { exchange, results, mask });
        }
        void results.return?.();
        const refusal = '{"errors":[{"message":"a subscription needs accept: text/event-stream"}]}';
        return json(fetchAPI, 406, refusal, accepted);
      };
      setResultProcessor((_result, fetchAPI) => render(fetchAPI), JSON_TYPE);
    },
  };
}

/** Returns the JSON of a result. */
export function textOfResult(result: { data?: unknown; errors?: readonly GraphQLError[] | undefined }): string {
  return JSON.stringify(result.errors ? { ...result, errors: result.errors.map(formatted) } : result);
}

/** Sends a response of Yoga that is not a stream; sends nothing if the client has disconnected. */
export async function sendResponse(answer: Response, res: ServerResponse): Promise<void> {
  const body = await answer.text();
  if (res.destroyed || res.writableEnded) return;
  res.setHeaders(answer.headers);
  res.writeHead(answer.status);
  res.end(body);
}

function json(
  fetchAPI: FetchAPI,
  status: number,
  body: string,
  accepted: readonly string[],
  errors: readonly GraphQLError[] = [],
): Response {
  const type = accepted.find((name) => TAKES_JSON.has(name)) === RESPONSE_TYPE ? RESPONSE_TYPE : JSON_TYPE;
  const headers = Object.assign(
    { 'content-type': `${type}; charset=utf-8` },
    ...errors.map((error) => httpOf(error).headers),
  );
  return new fetchAPI.Response(body, { status, headers });
}

/**
 * Returns the HTTP status of a result: 200 if the operation ran, whatever errors its fields have; otherwise the highest
 * status that an error requires, which is 400 for an invalid document. A client that accepts `application/json` by name
 * gets 200 for an invalid document, because it takes any other status for a response of an intermediary (GraphQL over
 * HTTP, appendix A).
 */
function statusOf(result: ExecutionResult, accepted: readonly string[]): number {
  const { errors } = result;
  if (!errors || 'data' in result) return 200;
  const isOnly200 = accepted.find((name) => name === SSE || TAKES_JSON.has(name)) === JSON_TYPE;
  const isFaultOfDocument = errors.every(({ extensions }) => DOCUMENT_FAULTS.has(extensions.code));
  const asked = Math.max(0, ...errors.map((error) => httpOf(error).status ?? 0));
  if (asked > 0 && !(isOnly200 && isFaultOfDocument)) return asked;
  if (errors.some(({ extensions }) => extensions.code === 'INTERNAL_SERVER_ERROR')) return 500;
  // A subscription that could not begin has the path of its field.
  return isOnly200 || errors.some(({ path }) => path !== undefined) ? 200 : 400;
}

function httpOf({ extensions }: GraphQLError): { status?: number; headers?: Record<string, string> } {
  const { http } = extensions;
  return typeof http === 'object' && http !== null ? http : {};
}

/** Returns the media types of an Accept header in their order; quality values are ignored. */
function mediaTypes(accept: string): string[] {
  return accept.split(',').map((part) => (part.split(';')[0] ?? '').trim().toLowerCase());
}

async function* once(result: ExecutionResult): AsyncGenerator<ExecutionResult> {
  yield result;
}

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
  connection: 'close',
};
const PING = Buffer.from(':\n\n');
const COMPLETE = Buffer.from('event: complete\ndata:\n\n');

interface SseStreamParts {
  results: AsyncIterator<ExecutionResult>;
  exchange: Exchange;
  mask: ErrorMask;
  /** Called when the connection has closed. */
  onClose: (stream: SseStream) => void;
}

/**
 * One event stream. It takes the next result only when the one before has been written, so that the events that a slow
 * client has not read wait in the subscription's own queue, which is limited.
 */
export class SseStream {
  readonly #parts: SseStreamParts;
  readonly #res: ServerResponse;
  #isOpen = true;
  /** The number of bytes that the operating system had taken from the connection's buffer at the last ping. */
  #taken = 0;
  #goOn: () => void = () => undefined;

  constructor(parts: SseStreamParts) {
    this.#parts = parts;
    this.#res = parts.exchange.res;
    this.#res.on('drain', () => this.#goOn());
    this.#res.on('close', () => {
      this.#end();
      parts.onClose(this);
    });
  }

  /** Sends the results until they or the connection end. */
  run(): void {
    if (!this.#isOpen) return;
    this.#writeHead();
    // Some clients wait for a first byte.
    this.#res.write(PING);
    void this.#pump();
  }

  /**
   * Sends a ping, which shows the client that the stream is alive. Drops the client if it had data to read and has read
   * none since the last ping.
   */
  ping(): void {
    if (!this.#res.headersSent || !this.#res.socket) return;
    const { bytesWritten, writableLength } = this.#res.socket;
    const taken = bytesWritten - writableLength;
    if (writableLength > 0 && taken === this.#taken) this.#res.destroy();
    else if (this.#isOpen && !this.#res.writableNeedDrain) this.#res.write(PING);
    this.#taken = taken;
  }

  /** Ends the stream without `complete`, so that the client reconnects. */
  cut(): void {
    if (!this.#end()) return;
    if (!this.#res.headersSent) this.#writeHead();
    this.#res.end();
  }

  /**
   * Writes the header of a response that ends with its connection (RFC 9112, section 6.3). In chunked encoding each
   * event would take four writes.
   */
  #writeHead(): void {
    this.#res.removeHeader('transfer-encoding');
    this.#res.writeHead(200, HEADERS);
  }

  async #pump(): Promise<void> {
    const { exchange, results, mask } = this.#parts;
    try {
      while (this.#isOpen) {
        const next = await results.next();
        if (!this.#isOpen) return;
        if (next.done) break;
        const span = sharedOf(next.value)?.startDelivery?.('sse');
        if (!this.#res.write(eventFrame(mask.result(next.value, exchange)))) await this.#drained();
        span?.end();
      }
    } catch (error) {
      if (!this.#isOpen) return;
      if (error instanceof StreamStoppedError) return this.cut();
      this.#res.write(eventFrame({ errors: [mask.error(error, exchange)] }));
    }
    if (this.#end()) this.#res.end(COMPLETE);
  }

  #drained(): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#goOn = resolve;
    return promise;
  }

  /** Ends the stream, and returns whether it was still open. */
  #end(): boolean {
    if (!this.#isOpen) return false;
    this.#isOpen = false;
    this.#goOn();
    void this.#parts.results.return?.();
    return true;
  }
}

/** Returns a result as an event of the stream, encoded once for all subscribers that share the result. */
function eventFrame(result: ExecutionResult): Buffer {
  const shared = sharedOf(result);
  if (shared?.frame) return shared.frame;
  const id = shared?.eventId === undefined ? '' : `id: ${shared.eventId}\n`;
  // These bytes are kept: for subscribers that are behind, and in the audit record of each stream until it ends.
  const frame = ownBytes(`event: next\n${id}data: ${shared?.text ?? textOfResult(result)}\n\n`);
  if (shared?.text !== undefined) shared.frame = frame;
  return frame;
}

const PING_MS = 12_000;

/** Holds the open event streams: server-sent events in the "distinct connections mode" of GraphQL over SSE. */
export class SseStreams {
  readonly #streams = new WeakMap<Response, SseStream>();
  readonly #open = new Set<SseStream>();
  #pings: NodeJS.Timeout | undefined;
  #isStopped = false;

  /**
   * Returns a response that stands for a stream of results: a `next` for each, and a `complete` after the last. `run`
   * sends it.
   */
  respond(fetchAPI: FetchAPI, parts: Omit<SseStreamParts, 'onClose'>): Response {
    const response = new fetchAPI.Response(null);
    const stream = new SseStream({ ...parts, onClose: (closed) => this.#leave(closed) });
    const { res } = parts.exchange;
    this.#streams.set(response, stream);
    // The client may have disconnected while the subscription began, and the process may be draining.
    if (!res.closed) {
      this.#open.add(stream);
      this.#pings ??= setInterval(() => this.#ping(), PING_MS);
    }
    if (res.destroyed || this.#isStopped) stream.cut();
    return response;
  }

  /**
   * Sends the stream that a response stands for, until its results or its connection end. Returns false if it stands
   * for none.
   */
  run(response: Response): boolean {
    const stream = this.#streams.get(response);
    stream?.run();
    return stream !== undefined;
  }

  /** The number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends every stream without `complete`, and those that begin later as well. */
  stop(): void {
    this.#isStopped = true;
    for (const stream of this.#open) stream.cut();
  }

  #ping(): void {
    for (const stream of this.#open) stream.ping();
  }

  #leave(stream: SseStream): void {
    this.#open.delete(stream);
    if (this.#open.size > 0) return;
    clearInterval(this.#pings);
    this.#pings = undefined;
  }
}
