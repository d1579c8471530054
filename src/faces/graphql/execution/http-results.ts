import type { ServerResponse } from 'node:http';
import type { ExecutionResult, GraphQLError } from 'graphql';
import { type FetchAPI, type Plugin, processRegularResult } from 'graphql-yoga';
import { StreamStoppedError } from '../../../events/streams/stream-errors.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { OperationAudits } from './audit-masking.ts';
import { type ErrorMask, formatted } from './error-masking.ts';
import type { OperationRequest } from './runtime.ts';
import { ownBytes, ResultStream, sharedOf } from './shared-results.ts';

const SSE = 'text/event-stream';
const JSON_TYPE = 'application/json';
/** Matches an Accept header that names one of the media types of GraphQL over HTTP. */
const NAMES_JSON = /application\/(?:graphql-response\+)?json/i;

/**
 * Creates the Yoga plugin that masks results and says what Yoga's own rendering cannot know: the status of results
 * without data, and event streams. Whoever accepts no JSON by name gets `application/json` with the status that
 * `application/graphql-response+json` has, because the operation may have changed something and must be answered.
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
    onResultProcess({ request, result, resultProcessor, setResult, setResultProcessor, serverContext: { exchange } }) {
      const stream = (results: AsyncIterator<ExecutionResult>) =>
        setResultProcessor((_result, fetchAPI) => streams.respond(fetchAPI, { exchange, results, mask }), SSE);
      const accepted = request.headers.get('accept') ?? '*/*';
      if (Array.isArray(result)) {
        const masked = result.map((one) => mask.result(one, exchange));
        const texts = masked.map(textOfResult);
        audits.answered(exchange, result, texts);
        setResult(masked.map((one, index) => ({ ...one, stringify: () => texts[index] ?? '' })));
      } else {
        audits.answered(exchange, [result]);
        if (Symbol.asyncIterator in result) {
          const results = subscriptions.get(exchange) ?? result[Symbol.asyncIterator]();
          // Without a processor Yoga answers 406.
          if (resultProcessor) stream(results);
          else void results.return?.();
          return;
        }
        const masked = withStatus(mask.result(result, exchange));
        setResult(masked);
        const isOk = !masked.errors?.some(({ extensions }) => extensions.http);
        if (isOk && accepted.includes(SSE) && resultProcessor !== processRegularResult) return stream(once(masked));
      }
      if (!NAMES_JSON.test(accepted)) setResultProcessor(asPlainJson, JSON_TYPE);
    },
  };
}

/**
 * Gives the errors of a result without data the HTTP status for Yoga to send, unless they have one or the operation had
 * begun: a subscription that could not begin has the path of its field. A limit is a 400 for every client, though Yoga
 * takes what is thrown while parsing for a syntax error.
 */
function withStatus(result: ExecutionResult): ExecutionResult {
  if ('data' in result) return result;
  for (const { path, extensions } of result.errors ?? []) {
    if (extensions.code === 'INTERNAL_SERVER_ERROR') extensions.http = { status: 500 };
    else if (extensions.code === 'LIMIT_EXCEEDED') extensions.http = { status: 400 };
    else if (path === undefined) extensions.http ??= { status: 400, spec: true };
  }
  return result;
}

function asPlainJson(...[result, fetchAPI]: Parameters<typeof processRegularResult>): Response {
  const response = processRegularResult(result, fetchAPI, 'application/graphql-response+json');
  response.headers.set('content-type', `${JSON_TYPE}; charset=utf-8`);
  return response;
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
