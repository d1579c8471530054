import type { ServerResponse } from 'node:http';
import { type ExecutionResult, GraphQLError } from 'graphql';
import { ownBytes } from '../lib/own-bytes.ts';
import { deliveryOf, eventIdOf, frameOf } from './event-answers.ts';
import { text } from './http-results.ts';
import { STOPPING } from './live-events.ts';
import type { Teller } from './masking.ts';

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
  teller: Teller;
  res: ServerResponse;
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
    const { res } = parts;
    res.on('drain', () => this.#goOn());
    res.on('close', () => {
      this.#end();
      parts.onClose(this);
    });
  }

  /** Sends what comes until it is over. */
  run(): void {
    const { res } = this.#parts;
    if (!this.#isOpen) return;
    this.#writeHead();
    // Some clients wait for a first byte.
    res.write(PING);
    void this.#pump();
  }

  /** Shows the client that it is alive; drops one that has taken nothing from one ping to the next though something waited. */
  ping(): void {
    const { res } = this.#parts;
    if (!res.headersSent || !res.socket) return;
    const { bytesWritten, writableLength } = res.socket;
    const taken = bytesWritten - writableLength;
    if (writableLength > 0 && taken === this.#taken) res.destroy();
    else if (this.#isOpen && !res.writableNeedDrain) res.write(PING);
    this.#taken = taken;
  }

  /** Ends it without `complete`, so that the client comes back. */
  cut(): void {
    const { res } = this.#parts;
    if (!this.#end()) return;
    if (!res.headersSent) this.#writeHead();
    res.end();
  }

  /** The stream ends with its connection (RFC 9112 section 6.3): in chunks each event would be a write of four pieces. */
  #writeHead(): void {
    const { res } = this.#parts;
    res.removeHeader('transfer-encoding');
    res.writeHead(200, HEADERS);
  }

  async #pump(): Promise<void> {
    const { res, results, teller } = this.#parts;
    try {
      while (this.#isOpen) {
        const next = await results.next();
        if (!this.#isOpen) return;
        if (next.done) break;
        const span = deliveryOf(next.value)?.('sse');
        if (!res.write(eventFrame(teller.result(next.value)))) await this.#drained();
        span?.end();
      }
    } catch (error) {
      if (!this.#isOpen) return;
      if (isStopping(error)) return this.cut();
      res.write(eventFrame({ errors: [teller.error(error)] }));
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

function isStopping(error: unknown): boolean {
  return error instanceof GraphQLError && error.extensions.code === STOPPING;
}

function eventFrame(result: ExecutionResult): Buffer {
  return frameOf(result, () => {
    const id = eventIdOf(result);
    // It is kept: for those who are behind, and in the audit record of each stream until that ends.
    return ownBytes(`event: next\n${id === undefined ? '' : `id: ${id}\n`}data: ${text(result)}\n\n`);
  });
}
