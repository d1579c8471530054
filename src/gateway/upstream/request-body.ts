import { Readable } from 'node:stream';
import { giveLeaveToSend } from '../../rest/leave-to-send.ts';
import type { Exchange } from '../exchange.ts';

interface RequestBodyParts {
  exchange: Exchange;
  /** 0: no limit. */
  maxBytes: number;
  onProgress(): void;
  onTooLong(): void;
}

/**
 * A request's body on its way to an upstream, at the upstream's pace. A client that waits for leave to send is told to go
 * on when the upstream is there to take it. Nothing is read before.
 */
export class RequestBody extends Readable {
  readonly #parts: RequestBodyParts;
  #isBegun = false;
  #isWanted = false;
  #bytes = 0;

  constructor(parts: RequestBodyParts) {
    super();
    this.#parts = parts;
    // Whoever has broken it off knows.
    this.on('error', () => undefined);
  }

  /** Whether the upstream waits for the client. */
  get isStarved(): boolean {
    return this.#isWanted && !this.#parts.exchange.req.readableEnded;
  }

  override _read(): void {
    this.#isWanted = true;
    if (this.#isBegun) this.#parts.exchange.req.resume();
    else this.#begin();
  }

  /** What is left of the body is nobody's: it is let run out, so that the client can read its answer. */
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const { req } = this.#parts.exchange;
    req.off('data', this.#take).off('end', this.#finish);
    if (this.#isBegun && !req.destroyed) req.resume();
    callback(error);
  }

  #begin(): void {
    this.#isBegun = true;
    const { exchange } = this.#parts;
    const { req } = exchange;
    exchange.bodyRead = true;
    giveLeaveToSend(exchange);
    req.on('data', this.#take).once('end', this.#finish);
  }

  readonly #take = (chunk: Buffer): void => {
    const { exchange, maxBytes, onProgress, onTooLong } = this.#parts;
    this.#bytes += chunk.length;
    if (maxBytes > 0 && this.#bytes > maxBytes) {
      onTooLong();
      return;
    }
    onProgress();
    this.#isWanted = this.push(chunk);
    if (!this.#isWanted) exchange.req.pause();
  };

  readonly #finish = (): void => {
    this.push(null);
  };
}
