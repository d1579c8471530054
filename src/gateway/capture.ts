import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatheredBytes } from '../lib/gathered-bytes.ts';

/** How much of a body is kept for the audit record before it is masked and cut. */
const KEPT_BYTES = 256 * 1024;
const ONE_WRITE_BYTES = 64 * 1024;

/** The beginning of a body, as it passed. */
class BodyPrefix {
  readonly #kept = new GatheredBytes();
  #total = 0;

  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const room = KEPT_BYTES - this.#kept.length;
    if (room > 0) this.#kept.push(chunk.subarray(0, room));
  }

  get bytes(): Buffer {
    return this.#kept.bytes;
  }

  get totalBytes(): number {
    return this.#total;
  }

  get truncated(): boolean {
    return this.#total > this.#kept.length;
  }
}

/** Told once that a request has ended; what is left of its answer is sent when `kept` is called. */
export type OnEnd = (aborted: boolean, kept: () => void) => void;

/**
 * Taps the bodies of a request and its response, without reading ahead; nothing is held back but the end of the answer.
 * Everything is written as bytes: Node would otherwise send the headers of a text body in another encoding.
 */
export class Capture {
  readonly request = new BodyPrefix();
  readonly response = new BodyPrefix();
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  #onEnd: OnEnd | undefined;
  #isRecorded = false;
  #isEnded = false;
  /** The arguments of a write that completes a body of a known length: its client would take the answer for ended. */
  #lastWrite: unknown[] | undefined;

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.#req = req;
    this.#res = res;
    // What comes while the request waits for its turn is of it.
    this.#tapRequest();
  }

  /** Whether the answer is complete, on its way or about to be. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Installs the taps once; `onEnd` is told before the last byte is handed to the socket, or when the client has gone. */
  install(onEnd: OnEnd): void {
    if (this.#onEnd) return;
    this.#onEnd = onEnd;
    this.#tapResponse();
    this.#res.once('close', () => this.#record(true, nothing));
  }

  /** The request has ended, and not by an answer that was written here. */
  finish(): void {
    this.#record(false, nothing);
  }

  #record(aborted: boolean, kept: () => void): void {
    if (this.#isRecorded || !this.#onEnd) {
      kept();
      return;
    }
    this.#isRecorded = true;
    this.#onEnd(aborted, kept);
  }

  #tapRequest(): void {
    const push = this.#req.push;
    this.#req.push = (chunk: unknown, encoding?: BufferEncoding) => {
      // What comes after its answer is thrown away.
      if (Buffer.isBuffer(chunk) && !this.#isRecorded) this.request.push(chunk);
      return push.call(this.#req, chunk, encoding);
    };
  }

  #tapResponse(): void {
    const { method, socket } = this.#req;
    const { write, end } = this.#res;
    const keep = (chunk: unknown, encoding: unknown): unknown => {
      const bytes = bytesOf(chunk, encoding);
      if (Buffer.isBuffer(bytes) && method !== 'HEAD') this.response.push(bytes);
      return bytes;
    };
    this.#res.write = ((chunk: unknown, ...rest: unknown[]) => {
      if (this.#isEnded) return false;
      const given = [keep(chunk, rest[0]), ...rest];
      if (!this.#isComplete()) return Reflect.apply(write, this.#res, given);
      this.#lastWrite ??= given;
      return true;
    }) as ServerResponse['write'];
    this.#res.end = ((chunk?: unknown, ...rest: unknown[]) => {
      if (this.#isEnded) return this.#res;
      this.#isEnded = true;
      const last = chunk === undefined || chunk === null || typeof chunk === 'function' ? chunk : keep(chunk, rest[0]);
      const [body, ...others] = [...(this.#lastWrite ?? []), last, ...rest];
      const given = Buffer.isBuffer(body) ? asOneWrite(body, others) : [body, ...others];
      // A handler may answer the loss of its client before the response hears of it.
      this.#record(socket.destroyed, () => this.#finish(end, given));
      return this.#res;
    }) as ServerResponse['end'];
  }

  /** What cannot be sent leaves nobody waiting. */
  #finish(end: ServerResponse['end'], given: readonly unknown[]): void {
    try {
      Reflect.apply(end, this.#res, [...given]);
    } catch (error) {
      this.#res.destroy();
      throw error;
    }
  }

  /** Whether every byte that the head announces has been given. */
  #isComplete(): boolean {
    const length = this.#res.getHeader('content-length');
    return length !== undefined && this.response.totalBytes >= Number(length);
  }
}

function nothing(): void {}

function bytesOf(chunk: unknown, encoding: unknown): unknown {
  if (typeof chunk === 'string') return Buffer.from(chunk, encodingOf(encoding));
  if (Buffer.isBuffer(chunk) || !(chunk instanceof Uint8Array)) return chunk;
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

/**
 * The arguments of `end` for a short body: as Latin-1 text Node sends it with the headers in one write, byte for byte,
 * where bytes cost a second one and UTF-8 text would send the headers in that encoding.
 */
function asOneWrite(bytes: Buffer, rest: readonly unknown[]): unknown[] {
  const callbacks = rest.filter((argument) => typeof argument === 'function');
  const tell = () => {
    for (const callback of callbacks) callback();
  };
  const told = callbacks.length > 0 ? [tell] : [];
  if (bytes.length > ONE_WRITE_BYTES) return [bytes, ...told];
  return [bytes.toString('latin1'), 'latin1', ...told];
}

function encodingOf(value: unknown): BufferEncoding {
  return typeof value === 'string' && Buffer.isEncoding(value) ? value : 'utf8';
}
