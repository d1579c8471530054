import type { IncomingMessage, ServerResponse } from 'node:http';

/** How much of a body is kept for the audit record before it is masked and cut. */
const KEPT_BYTES = 256 * 1024;

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
    this.#tapRequest();
    this.#tapResponse(end);
    this.#res.once('close', () => end(true));
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
    const { write, end: finish } = this.#res;
    const keep = (chunk: unknown, encoding: unknown): unknown => {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encodingOf(encoding)) : chunk;
      if (bytes instanceof Uint8Array) response.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      return bytes;
    };
    this.#res.write = function tapped(this: ServerResponse, chunk: unknown, ...rest: unknown[]) {
      return Reflect.apply(write, this, [keep(chunk, rest[0]), ...rest]);
    } as ServerResponse['write'];
    this.#res.end = function tapped(this: ServerResponse, chunk?: unknown, ...rest: unknown[]) {
      const last = chunk === undefined || chunk === null || typeof chunk === 'function' ? chunk : keep(chunk, rest[0]);
      end(false);
      return Reflect.apply(finish, this, [last, ...rest]);
    } as ServerResponse['end'];
  }
}

function encodingOf(value: unknown): BufferEncoding {
  return typeof value === 'string' && Buffer.isEncoding(value) ? value : 'utf8';
}
