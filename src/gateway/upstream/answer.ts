import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { lingerOnClose } from '../../rest/lingering-close.ts';
import type { Exchange } from '../exchange.ts';
import { announcesBody } from '../head.rules.ts';
import { BadAnswerError } from './failures.ts';
import { eachAnswerField } from './headers.ts';

type Controller = Pick<Dispatcher.DispatchController, 'pause' | 'resume'>;

/** A body of a known length up to this goes out in one write with its head, if it came in one piece. */
const ONE_PIECE_BYTES = 64 * 1024;

/** The answer of an upstream on its way to the client, at the client's pace; nothing is held back. */
export class Answer {
  readonly #exchange: Exchange;
  readonly #idleMs: number;
  readonly #onStall: () => void;
  /** The fields that are set on the answer for the upstream. */
  readonly #passed: string[] = [];
  #length = -1;
  #whole: Buffer | undefined;
  #stall: NodeJS.Timeout | undefined;

  /** `onStall` is called when the client has taken nothing of what waits for it for `idleMs`. */
  constructor(exchange: Exchange, idleMs: number, onStall: () => void) {
    this.#exchange = exchange;
    this.#idleMs = idleMs;
    this.#onStall = onStall;
  }

  /** Passes an interim answer, where the client's version of HTTP knows them (RFC 9110 section 15.2). */
  inform(status: number, headers: IncomingHttpHeaders): void {
    const { req, res, upgrade } = this.#exchange;
    if (status < 102 || req.httpVersion !== '1.1' || res.headersSent || upgrade) return;
    const fields: [string, string | string[]][] = [];
    eachAnswerField(headers, (name, value) => fields.push([name, value]));
    res.writeInformation(status, Object.fromEntries(fields));
  }

  /**
   * Takes the head. It goes out with what follows it at once, else by itself.
   * @throws BadAnswerError or TypeError for one that cannot be passed.
   */
  begin(status: number, headers: IncomingHttpHeaders): void {
    const { req, res } = this.#exchange;
    const coding = headers['transfer-encoding'];
    // Only chunked has been decoded; no other one was asked for.
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw new BadAnswerError('its transfer-coding');
    if (status > 599) throw new BadAnswerError('its status');
    res.statusCode = status;
    eachAnswerField(headers, (name, value) => this.#pass(name, value));
    if (status === 204) res.removeHeader('content-length');
    if (!req.complete && announcesBody(req)) {
      // The upstream does not wait for the rest of the body, which nobody takes.
      res.setHeader('Connection', 'close');
      lingerOnClose(this.#exchange);
    }
    const length = headers['content-length'];
    this.#length = typeof length === 'string' && Number(length) <= ONE_PIECE_BYTES ? Number(length) : -1;
    process.nextTick(flush, this.#exchange);
  }

  /** Passes a piece of the body; the upstream waits while the client does not take it. */
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

  /** The answer is complete. */
  end(): void {
    const { res } = this.#exchange;
    if (this.#whole) res.end(this.#whole);
    else res.end();
  }

  /** Takes back what was not sent, in favour of a refusal. */
  revoke(): void {
    const { res } = this.#exchange;
    if (!res.headersSent) for (const name of this.#passed) res.removeHeader(name);
  }

  /** Waits for the client no longer. */
  stop(): void {
    clearTimeout(this.#stall);
    this.#stall = undefined;
  }

  /** What the gateway has said stays; `Vary` is the sum of both. */
  #pass(name: string, value: string | string[]): void {
    const { res } = this.#exchange;
    if (!res.hasHeader(name)) this.#passed.push(name);
    else if (name !== 'vary') return;
    if (name === 'vary') res.appendHeader(name, value);
    else res.setHeader(name, value);
  }
}

/** Sends a head that nothing has followed yet. */
function flush({ isAnswered, res }: Exchange): void {
  if (!isAnswered && !res.destroyed) res.flushHeaders();
}
