import type { ExecutionResult } from 'graphql';
import type { FetchAPI } from 'graphql-yoga';
import { StreamStoppedError } from '../../../events/streams/stream-errors.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { ErrorMask } from './error-masking.ts';
import { text } from './http-results.ts';
import { sharedOf } from './shared-results.ts';
import { ownBytes } from './uploads.ts';

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
  connection: 'close',
};
const PING = Buffer.from(':\n\n');
const COMPLETE = Buffer.from('event: complete\ndata:\n\n');

export interface SseStreamParts {
  results: AsyncIterator<ExecutionResult>;
  exchange: Exchange;
  mask: ErrorMask;
  /** Told when its connection has closed: until then somebody may have to drop it. */
  onClose: (stream: SseStream) => void;
}

/**
 * One event stream. A result is taken when the one before is on its way, so that what a slow client
 * leaves unsent stays where it is counted.
 */
export class SseStream {
  readonly #parts: SseStreamParts;
  #isOpen = true;
  /** How many bytes its connection had taken at the last ping. */
  #taken = 0;
  #goOn: () => void = () => undefined;

  constructor(parts: SseStreamParts) {
    this.#parts = parts;
    const { res } = parts.exchange;
    res.on('drain', () => this.#goOn());
    res.on('close', () => {
      this.#end();
      parts.onClose(this);
    });
  }

  /** Sends what comes until it is over. */
  run(): void {
    const { res } = this.#parts.exchange;
    if (!this.#isOpen) return;
    this.#writeHead();
    // Some clients wait for a first byte.
    res.write(PING);
    void this.#pump();
  }

  /** Shows the client that it is alive; drops one that has taken nothing from one ping to the next though something waited. */
  ping(): void {
    const { res } = this.#parts.exchange;
    if (!res.headersSent || !res.socket) return;
    const { bytesWritten, writableLength } = res.socket;
    const taken = bytesWritten - writableLength;
    if (writableLength > 0 && taken === this.#taken) res.destroy();
    else if (this.#isOpen && !res.writableNeedDrain) res.write(PING);
    this.#taken = taken;
  }

  /** Ends it without `complete`, so that the client comes back. */
  cut(): void {
    const { res } = this.#parts.exchange;
    if (!this.#end()) return;
    if (!res.headersSent) this.#writeHead();
    res.end();
  }

  /** The stream ends with its connection (RFC 9112 section 6.3): in chunks each event would be a write of four pieces. */
  #writeHead(): void {
    const { res } = this.#parts.exchange;
    res.removeHeader('transfer-encoding');
    res.writeHead(200, HEADERS);
  }

  async #pump(): Promise<void> {
    const { exchange, results, mask } = this.#parts;
    const { res } = exchange;
    try {
      while (this.#isOpen) {
        const next = await results.next();
        if (!this.#isOpen) return;
        if (next.done) break;
        const span = sharedOf(next.value)?.startDelivery?.('sse');
        if (!res.write(eventFrame(mask.result(next.value, exchange)))) await this.#drained();
        span?.end();
      }
    } catch (error) {
      if (!this.#isOpen) return;
      if (error instanceof StreamStoppedError) return this.cut();
      res.write(eventFrame({ errors: [mask.error(error, exchange)] }));
    }
    if (this.#end()) res.end(COMPLETE);
  }

  #drained(): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#goOn = resolve;
    return promise;
  }

  /** @returns whether it was open. */
  #end(): boolean {
    if (!this.#isOpen) return false;
    this.#isOpen = false;
    this.#goOn();
    void this.#parts.results.return?.();
    return true;
  }
}

function eventFrame(result: ExecutionResult): Buffer {
  const shared = sharedOf(result);
  if (shared?.frame) return shared.frame;
  const id = shared?.eventId;
  // It is kept: for those who are behind, and in the audit record of each stream until that ends.
  const frame = ownBytes(`event: next\n${id === undefined ? '' : `id: ${id}\n`}data: ${text(result)}\n\n`);
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

  /** Stands for a stream of results, each a `next`, and a `complete` behind the last; `run` sends it. */
  respond(fetchAPI: FetchAPI, parts: Omit<SseStreamParts, 'onClose'>): Response {
    const response = new fetchAPI.Response(null);
    const stream = new SseStream({ ...parts, onClose: (closed) => this.#leave(closed) });
    this.#streams.set(response, stream);
    // Its client may have gone while it was made ready, and the instance may be about to stop.
    if (!parts.exchange.res.closed) this.#enter(stream);
    if (parts.exchange.res.destroyed || this.#isStopped) stream.cut();
    return response;
  }

  /** Sends the stream that a response stands for, until its results or its client end it. @returns whether it is one. */
  run(response: Response): boolean {
    const stream = this.#streams.get(response);
    stream?.run();
    return stream !== undefined;
  }

  /** The number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends every stream without `complete`, those that begin later as well. */
  stop(): void {
    this.#isStopped = true;
    for (const stream of this.#open) stream.cut();
  }

  #enter(stream: SseStream): void {
    this.#open.add(stream);
    this.#pings ??= setInterval(() => {
      for (const open of this.#open) open.ping();
    }, PING_MS);
  }

  #leave(stream: SseStream): void {
    this.#open.delete(stream);
    if (this.#open.size > 0) return;
    clearInterval(this.#pings);
    this.#pings = undefined;
  }
}
