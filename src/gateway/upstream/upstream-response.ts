import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Exchange } from '../exchange/exchange.ts';
import { announcesBody } from '../exchange/request-head.ts';
import { lingerOnClose } from '../exchange/responses.ts';
import { BadResponseError, eachResponseField } from './headers.ts';

type Controller = Pick<Dispatcher.DispatchController, 'pause' | 'resume'>;

/** The longest body that is sent in one write with its head, if it arrived in one chunk. */
const ONE_PIECE_BYTES = 64 * 1024;

/** Passes the response of an upstream to the client, at the pace of the client, without buffering. */
export class UpstreamResponse {
  readonly #exchange: Exchange;
  readonly #idleMs: number;
  readonly #onStall: () => void;
  /** The fields that come from the upstream. */
  readonly #passed: string[] = [];
  #length = -1;
  #whole: Buffer | undefined;
  #stall: NodeJS.Timeout | undefined;

  /** `onStall` is called when the client has read nothing for `idleMs`. */
  constructor(exchange: Exchange, idleMs: number, onStall: () => void) {
    this.#exchange = exchange;
    this.#idleMs = idleMs;
    this.#onStall = onStall;
  }

  /** Passes an interim response, if the client's version of HTTP has them (RFC 9110 section 15.2). */
  inform(status: number, headers: IncomingHttpHeaders): void {
    const { req, res, upgrade } = this.#exchange;
    if (status < 102 || req.httpVersion !== '1.1' || res.headersSent || upgrade) return;
    const fields: [string, string | string[]][] = [];
    eachResponseField(headers, (name, value) => fields.push([name, value]));
    res.writeInformation(status, Object.fromEntries(fields));
  }

  /**
   * Takes the head. It is sent together with what follows at once, else alone.
   * @throws BadResponseError or TypeError for a head that cannot be passed on.
   */
  begin(status: number, headers: IncomingHttpHeaders): void {
    const { req, res } = this.#exchange;
    const coding = headers['transfer-encoding'];
    // Only chunked has been decoded, and nothing else was asked for.
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw new BadResponseError('its transfer-coding');
    if (status > 599) throw new BadResponseError('its status');
    res.statusCode = status;
    eachResponseField(headers, (name, value) => this.#pass(name, value));
    if (status === 204) res.removeHeader('content-length');
    if (!req.complete && announcesBody(req)) {
      // The upstream has answered without the rest of the body.
      res.setHeader('Connection', 'close');
      lingerOnClose(this.#exchange);
    }
    const length = headers['content-length'];
    this.#length = typeof length === 'string' && Number(length) <= ONE_PIECE_BYTES ? Number(length) : -1;
    process.nextTick(flush, this.#exchange);
  }

  /** Passes a chunk of the body; the upstream is paused while the client does not read. */
  data(controller: Controller, chunk: Buffer): void {
    const { res } = this.#exchange;
    if (chunk.length === this.#length) {
      this.#whole = chunk;
      return;
    }
    if (res.write(chunk) || this.#stall) return;
    controller.pause();
    this.#stall = setTimeout(this.#onStall, this.#idleMs);
    res.once('drain', () => {
      this.stop();
      controller.resume();
    });
  }

  /** Completes the response. */
  end(): void {
    const { res } = this.#exchange;
    if (this.#whole) res.end(this.#whole);
    else res.end();
  }

  /** Removes the upstream's fields, if they were not sent, in favour of a refusal. */
  revoke(): void {
    const { res } = this.#exchange;
    if (!res.headersSent) for (const name of this.#passed) res.removeHeader(name);
  }

  /** Stops waiting for the client. */
  stop(): void {
    clearTimeout(this.#stall);
    this.#stall = undefined;
  }

  /** Sets a field unless the gateway has set it; `Vary` is combined. */
  #pass(name: string, value: string | string[]): void {
    const { res } = this.#exchange;
    if (!res.hasHeader(name)) this.#passed.push(name);
    else if (name !== 'vary') return;
    if (name === 'vary') res.appendHeader(name, value);
    else res.setHeader(name, value);
  }
}

/** Sends a head that no body has followed yet. */
function flush({ isAnswered, res }: Exchange): void {
  if (!isAnswered && !res.destroyed) res.flushHeaders();
}
