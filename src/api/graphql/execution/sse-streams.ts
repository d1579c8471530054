import type { ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import type { FetchAPI } from 'graphql-yoga';
import { isGuardRefusal } from '../../../access/limits/client-guards.ts';
import type { AccessWatch } from '../../../access/revocation/access-watch.ts';
import { StreamStoppedError } from '../../../events/streams/event-log.ts';
import { recordedBytes } from '../../../gateway/exchange/capture.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import { sendBody } from '../../../gateway/exchange/responses.ts';
import { runCooperatively } from '../../../lib/yielding.ts';
import type { Refusal } from '../../../platform/errors.ts';
import { type ErrorMask, textOfResult } from './error-masking.ts';
import { type EventResults, holdText, ownBytes, type SharedFrame, sharedOf } from './shared-results.ts';

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
  connection: 'close',
};
const PING = Buffer.from(':\n\n');
const COMPLETE = Buffer.from('event: complete\ndata:\n\n');

/**
 * How long a stream may still take to send what is written when its token has ended. A client that reads nothing is
 * disconnected then.
 */
const LAST_SEND_MS = 400;

interface SseStreamDependencies {
  results: EventResults;
  exchange: Exchange;
  mask: ErrorMask;
  watch: Pick<AccessWatch, 'watch'>;
  /** Called when the connection has closed. */
  onClose: () => void;
}

/**
 * One event stream. It takes the next result only when the one before has been written, so that the events that a slow
 * client has not read wait in the subscription's own queue, which is limited.
 */
export class SseStream {
  readonly #deps: SseStreamDependencies;
  readonly #res: ServerResponse;
  readonly #unwatch: (() => void) | undefined;
  #isOpen = true;
  /** The number of bytes that the operating system had taken from the connection's buffer at the last ping. */
  #taken = 0;

  constructor(deps: SseStreamDependencies) {
    this.#deps = deps;
    this.#res = deps.exchange.res;
    const { guarded, state } = deps.exchange;
    this.#unwatch = state.principal && deps.watch.watch(state.principal, guarded, (refusal) => this.#expire(refusal));
    this.#res.on('close', () => {
      this.#end();
      deps.onClose();
    });
  }

  /** Sends the results until they or the connection end. */
  run(): void {
    if (!this.#isOpen) return;
    this.#writeHead();
    // Some clients wait for a first byte.
    this.#res.write(PING);
    this.#deps.results.sendNow = this.#sendNow;
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
    else if (this.#isOpen && !this.#res.socket.writableNeedDrain) this.#deps.exchange.audit.capture.writeShared(PING);
    this.#taken = taken;
  }

  /** Ends the stream without `complete`, so that the client reconnects. */
  cut(): void {
    if (!this.#end()) return;
    if (!this.#res.headersSent) this.#writeHead();
    this.#res.end();
  }

  /**
   * Ends the stream because its access has ended: with an error if a guard refuses it. When the token has ended, the client
   * resumes with another one.
   */
  #expire(refusal: Refusal): void {
    if (isGuardRefusal(refusal)) this.#deps.exchange.held?.refuse(refusal);
    else this.cut();
    setTimeout(() => this.#res.destroy(), LAST_SEND_MS).unref();
  }

  /**
   * Writes the header of a response that ends with its connection (RFC 9112, section 6.3). In chunked encoding each
   * event would take four writes.
   */
  #writeHead(): void {
    this.#res.removeHeader('transfer-encoding');
    this.#res.writeHead(200, HEADERS);
  }

  #writeEvent(result: ExecutionResult, onTaken?: () => void): void {
    const { bytes, recorded } = eventFrame(result);
    this.#deps.exchange.audit.capture.writeShared(bytes, recorded, this.#deps.exchange.held, onTaken);
  }

  /** Sends a result if the operating system has taken all before it. */
  readonly #sendNow: EventResults['sendNow'] = (result) => {
    if (!result || this.#res.socket?.writableLength !== 0) return false;
    this.#writeEvent(result);
    sharedOf(result)?.startDelivery?.('sse')?.end();
    return true;
  };

  async #pump(): Promise<void> {
    const { exchange, mask } = this.#deps;
    try {
      while (this.#isOpen && (await this.#sendNext()));
    } catch (error) {
      if (!this.#isOpen) return;
      if (error instanceof StreamStoppedError) return this.cut();
      this.#writeEvent({ errors: [mask.error(error, exchange)] });
    }
    if (this.#end()) this.#res.end(COMPLETE);
  }

  /**
   * Sends the next result; returns false if there is none. Apart from the loop, which would hold the last result while it
   * waits for the next one.
   */
  async #sendNext(): Promise<boolean> {
    const { exchange, results, mask } = this.#deps;
    const next = await results.next();
    if (!this.#isOpen || next.done) return false;
    const shared = sharedOf(next.value);
    const span = shared?.startDelivery?.('sse');
    const masked = shared?.text === undefined ? await mask.result(next.value, exchange) : next.value;
    await holdText(shared?.text?.length ?? 0);
    await new Promise<void>((resolve) => this.#writeEvent(masked, resolve));
    span?.end();
    return true;
  }

  /** Ends the stream, and returns whether it was still open. */
  #end(): boolean {
    if (!this.#isOpen) return false;
    this.#isOpen = false;
    this.#unwatch?.();
    void this.#deps.results.return?.();
    return true;
  }
}

/** Returns a result as an event of the stream, encoded once for all subscribers that share the result. */
function eventFrame(result: ExecutionResult): SharedFrame {
  const shared = sharedOf(result);
  if (shared?.frame) return shared.frame;
  const id = shared?.eventId === undefined ? '' : `id: ${shared.eventId}\n`;
  // These bytes are kept: for subscribers that are behind, and in the audit record of each stream until it ends.
  const bytes = ownBytes(`event: next\n${id}data: ${shared?.text ?? textOfResult(result)}\n\n`);
  const frame = { bytes, recorded: recordedBytes(bytes) };
  if (shared?.text !== undefined) shared.frame = frame;
  return frame;
}

const PING_MS = 12_000;

/** Holds the open event streams: server-sent events in the "distinct connections mode" of GraphQL over SSE. */
export class SseStreams {
  readonly #open = new Map<Exchange, SseStream>();
  readonly #watch: SseStreamDependencies['watch'];
  #pings: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(watch: SseStreamDependencies['watch']) {
    this.#watch = watch;
  }

  /**
   * Answers an exchange with a stream of results: a `next` for each, and a `complete` after the last. `run` begins to
   * send it, and the response for Yoga is empty.
   */
  respond(fetchAPI: FetchAPI, deps: Omit<SseStreamDependencies, 'onClose' | 'watch'>): Response {
    const { exchange } = deps;
    const { res } = exchange;
    const stream = new SseStream({ ...deps, watch: this.#watch, onClose: () => this.#leave(exchange) });
    // The client may have disconnected while the subscription began, and the process may be draining.
    if (!res.closed) {
      this.#open.set(exchange, stream);
      this.#pings ??= setInterval(() => void this.#ping(), PING_MS);
    }
    if (res.destroyed || this.#isStopped) stream.cut();
    return new fetchAPI.Response(null);
  }

  /** Sends the stream of an exchange, until its results or its connection end. Returns false if it has none. */
  run(exchange: Exchange): boolean {
    const stream = this.#open.get(exchange);
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
    for (const stream of this.#open.values()) stream.cut();
  }

  async #ping(): Promise<void> {
    for (const stream of this.#open.values()) await runCooperatively(() => stream.ping(), undefined);
  }

  #leave(exchange: Exchange): void {
    this.#open.delete(exchange);
    if (this.#open.size > 0) return;
    clearInterval(this.#pings);
    this.#pings = undefined;
  }
}

/** Sends a response of Yoga that is not a stream; sends nothing if the client has disconnected. */
export async function sendResponse(answer: Response, res: ServerResponse): Promise<void> {
  const body = await answer.text();
  if (res.destroyed || res.writableEnded) return;
  res.setHeaders(answer.headers);
  res.writeHead(answer.status);
  await sendBody(res, body);
}
