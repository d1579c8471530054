import { Readable } from 'node:stream';
import type { Exchange } from '../exchange/exchange.ts';
import { sendContinue } from '../exchange/responses.ts';

interface RequestBodyDependencies {
  exchange: Exchange;
  /** The longest body accepted, in bytes; 0 means no limit. */
  maxBytes: number;
  onProgress(): void;
  onTooLong(): void;
}

/**
 * Streams the body of a request to an upstream, at the pace of the upstream. Reads nothing, and sends no 100 Continue,
 * before the upstream's connection asks for the body.
 */
export class RequestBody extends Readable {
  readonly #deps: RequestBodyDependencies;
  #isBegun = false;
  #isWanted = false;
  #bytes = 0;

  constructor(deps: RequestBodyDependencies) {
    super();
    this.#deps = deps;
    // The code that aborts the body knows the error already.
    this.on('error', () => undefined);
  }

  /** Whether the upstream waits for the client to send more of the body. */
  get isStarved(): boolean {
    return this.#isWanted && !this.#deps.exchange.req.readableEnded;
  }

  override _read(): void {
    this.#isWanted = true;
    if (this.#isBegun) this.#deps.exchange.req.resume();
    else this.#begin();
  }

  /** Discards the rest of the body, so that the client can read the response. */
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const { req } = this.#deps.exchange;
    req.off('data', this.#onData).off('end', this.#finish);
    if (this.#isBegun && !req.destroyed) req.resume();
    callback(error);
  }

  #begin(): void {
    this.#isBegun = true;
    const { exchange } = this.#deps;
    const { req } = exchange;
    exchange.audit.isBodyRead = true;
    sendContinue(exchange);
    req.on('data', this.#onData).once('end', this.#finish);
  }

  readonly #onData = (chunk: Buffer): void => {
    const { exchange, maxBytes, onProgress, onTooLong } = this.#deps;
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
