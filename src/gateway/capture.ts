import type { IncomingMessage, ServerResponse } from 'node:http';

/** How much of a body is kept for the audit record before it is masked and cut. */
const KEPT_BYTES = 256 * 1024;
const ONE_WRITE_BYTES = 64 * 1024;

/** The beginning of a body, as it passed. */
export class BodyPrefix {
  readonly #chunks: Buffer[] = [];
  #kept = 0;
  #total = 0;

  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const room = KEPT_BYTES - this.#kept;
    if (room <= 0) return;
    this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#kept += Math.min(room, chunk.length);
  }

  get bytes(): Buffer {
    return this.#chunks.length === 1 && this.#chunks[0] ? this.#chunks[0] : Buffer.concat(this.#chunks);
  }

  get totalBytes(): number {
    return this.#total;
  }

  get truncated(): boolean {
    return this.#total > this.#kept;
  }
}

/**
 * Taps the bodies of a request and its response, without reading ahead and without holding anything back.
 * Everything is written as bytes: Node would otherwise send the headers of a text body in another encoding.
 */
export class Capture {
  readonly request = new BodyPrefix();
  readonly response = new BodyPrefix();
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  #installed = false;
  #end: (aborted: boolean) => void = () => undefined;

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.#req = req;
    this.#res = res;
  }

  /** Installs the taps once; `onEnd` runs before the last byte is handed to the socket, or when the client has gone. */
  install(onEnd: (aborted: boolean) => void): void {
    if (this.#installed) return;
    this.#installed = true;
    let ended = false;
    const end = (aborted: boolean) => {
      if (ended) return;
      ended = true;
      onEnd(aborted);
    };
    this.#end = end;
    this.#tapRequest();
    this.#tapResponse(end);
    this.#res.once('close', () => end(true));
  }

  /** The request has ended, and not by an answer that was written here. */
  finish(): void {
    this.#end(false);
  }

  #tapRequest(): void {
    const { request } = this;
    const push = this.#req.push;
    this.#req.push = function tapped(this: IncomingMessage, chunk: unknown, encoding?: BufferEncoding) {
      if (Buffer.isBuffer(chunk)) request.push(chunk);
      return push.call(this, chunk, encoding);
    };
  }

  #tapResponse(end: (aborted: boolean) => void): void {
    const { response } = this;
    const { method, socket } = this.#req;
    const { write, end: finish } = this.#res;
    const keep = (chunk: unknown, encoding: unknown): unknown => {
      const bytes = bytesOf(chunk, encoding);
      if (Buffer.isBuffer(bytes) && method !== 'HEAD') response.push(bytes);
      return bytes;
    };
    this.#res.write = function tapped(this: ServerResponse, chunk: unknown, ...rest: unknown[]) {
      return Reflect.apply(write, this, [keep(chunk, rest[0]), ...rest]);
    } as ServerResponse['write'];
    this.#res.end = function tapped(this: ServerResponse, chunk?: unknown, ...rest: unknown[]) {
      const last = chunk === undefined || chunk === null || typeof chunk === 'function' ? chunk : keep(chunk, rest[0]);
      // A handler may answer the loss of its client before the response hears of it.
      end(socket.destroyed);
      return Reflect.apply(finish, this, Buffer.isBuffer(last) ? asOneWrite(last, rest) : [last, ...rest]);
    } as ServerResponse['end'];
  }
}

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
  if (bytes.length > ONE_WRITE_BYTES) return [bytes, ...rest];
  return [bytes.toString('latin1'), 'latin1', ...rest.filter((argument) => typeof argument === 'function')];
}

function encodingOf(value: unknown): BufferEncoding {
  return typeof value === 'string' && Buffer.isEncoding(value) ? value : 'utf8';
}
