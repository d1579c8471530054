import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatheredBytes } from '../../lib/gathered-bytes.ts';
import { type HeldMemory, SharedHold } from '../../platform/held-memory.ts';

/** The most bytes of a body that are captured for the audit record, before masking and cutting. */
const KEPT_BYTES = 256 * 1024;
const ONE_WRITE_BYTES = 64 * 1024;

/**
 * The limit on tiny chunks: each `CHUNKS` chunks of a body must contain `MIN_BYTES` bytes. Even the shortest chunk
 * costs as much CPU as a hundred bytes. A client that sends a byte a second stays below `CHUNKS` in the hour that a
 * request may take.
 */
const CHUNKS = 4_096;
const MIN_BYTES = 16 * CHUNKS;

/** Returns what records keep of bytes that many responses share: of longer ones a copy of the beginning. */
export function recordedBytes(bytes: Buffer): SharedHold<Buffer> {
  const recorded = bytes.length > KEPT_BYTES ? Buffer.from(bytes.subarray(0, KEPT_BYTES)) : bytes;
  return new SharedHold(recorded, recorded.length);
}

/** Collects the beginning of a body. */
class BodyPrefix {
  #prefix = new GatheredBytes();
  #maxBytes = KEPT_BYTES;
  readonly #shared: Buffer[] = [];
  readonly #charged: SharedHold<Buffer>[] = [];
  #held: HeldMemory | undefined;
  #text: string | undefined;
  /** The length of the whole body, in bytes. */
  totalBytes = 0;

  /** Keeps only the length, of a body that is not recorded. */
  drop(): void {
    this.#prefix = new GatheredBytes();
    this.#maxBytes = 0;
  }

  push(chunk: Buffer): void {
    if (this.#shared.length > 0) {
      this.pushShared(chunk);
      return;
    }
    this.totalBytes += chunk.length;
    const freeBytes = this.#maxBytes - this.#prefix.length;
    if (freeBytes > 0) this.#prefix.push(chunk.length > freeBytes ? chunk.subarray(0, freeBytes) : chunk);
  }

  /**
   * Takes bytes that are never changed, and that stay in memory for others as well, without copying them. `recorded` is
   * what is kept of them, and charged until `release`; bytes without it stay in memory anyway.
   */
  pushShared(bytes: Buffer, recorded?: SharedHold<Buffer>, held?: HeldMemory): void {
    if (this.totalBytes < KEPT_BYTES) {
      this.#shared.push(recorded?.value ?? bytes);
      if (recorded) {
        this.#held = held;
        recorded.take(held);
        this.#charged.push(recorded);
      }
    }
    this.totalBytes += bytes.length;
  }

  /** Releases what is shared, because the body has been recorded. */
  release(): void {
    for (const recorded of this.#charged.splice(0)) recorded.release(this.#held);
  }

  /** Takes an ASCII text that is the whole body. */
  pushText(text: string): void {
    this.totalBytes = text.length;
    this.#text = text;
  }

  get content(): Buffer | string {
    if (this.#shared.length === 0) return this.#text ?? this.#prefix.bytes;
    return Buffer.concat([this.#prefix.bytes, ...this.#shared]).subarray(0, KEPT_BYTES);
  }

  get truncated(): boolean {
    return this.#text === undefined && this.totalBytes > KEPT_BYTES;
  }
}

/**
 * Runs a function without an async context. The keep-alive timer of a connection captures the context in which a
 * response ends, and would keep everything that the request has stored there until the next request.
 */
const withoutContext = AsyncLocalStorage.snapshot();

/** Called once when a request ends; the rest of its response is sent when `onPersisted` is called. */
type OnEnd = (aborted: boolean, onPersisted: () => void) => void;

/**
 * Captures the bodies of a request and its response as they pass. Delays only the end of the response, until its record
 * is stored. Writes everything as bytes, because Node would otherwise send the headers of a text body in another
 * encoding.
 */
export class Capture {
  readonly request = new BodyPrefix();
  readonly response = new BodyPrefix();
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #write: ServerResponse['write'];
  readonly #end: ServerResponse['end'];
  #onEnd: OnEnd | undefined;
  #onTinyChunks: (() => void) | undefined;
  #isRecorded = false;
  /** Whether the response is complete: sent, or about to be. */
  isEnded = false;
  /**
   * The arguments of the write that completes a body of known length. It is delayed with the end, because the client
   * would take the response as complete.
   */
  #lastWrite: unknown[] | undefined;

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.#req = req;
    this.#res = res;
    this.#write = res.write;
    this.#end = res.end;
    // Starts at once: bytes that arrive while the request waits for earlier ones belong to its body.
    this.#tapRequest();
  }

  /**
   * Closes the connection if the body of the request comes in tiny chunks (RFC 9112 section 7.1 has no minimum), and
   * calls `onExceeded`. The request ends as if the client had left.
   */
  limitChunks(onExceeded: () => void): void {
    if (!announcesBody(this.#req)) return;
    this.#onTinyChunks = onExceeded;
    // Without this, Node would discard an unread body after the response chunk by chunk, uncounted.
    this.#res.prependOnceListener('finish', () => {
      if (this.#req.complete || this.#req.readableFlowing) return;
      this.#req.read();
      this.#req.resume();
    });
  }

  /**
   * Starts capturing the response; further calls have no effect. `onEnd` is called before the last byte is handed to
   * the connection, or when the client has left.
   */
  install(onEnd: OnEnd): void {
    if (this.#onEnd) return;
    this.#onEnd = onEnd;
    this.#tapResponse();
    this.#res.once('close', () => {
      this.#record(true, () => undefined);
      this.response.release();
    });
  }

  /**
   * Writes a further piece of a response that ends with its connection, of bytes that many responses share: the record
   * refers to them, or to `recorded`, which is charged. It goes to the connection itself, which the response object
   * would cork and uncork for each piece. Calls `onTaken` when the operating system has taken it, or the connection has closed.
   */
  writeShared(bytes: Buffer, recorded?: SharedHold<Buffer>, held?: HeldMemory, onTaken?: () => void): void {
    const { socket } = this.#res;
    if (socket && !this.isEnded) {
      this.response.pushShared(bytes, recorded, held);
      socket.write(bytes, onTaken);
    } else onTaken?.();
  }

  /** Ends a response with bytes that many responses share: neither the record nor the connection has a copy. */
  endShared(bytes: Buffer): void {
    if (this.isEnded) return;
    this.isEnded = true;
    if (this.#req.method !== 'HEAD') this.response.pushShared(bytes);
    this.#record(this.#req.socket.destroyed, () => this.#finish([bytes]));
  }

  /** Records the end of a request whose response was not written by this process, such as a WebSocket's. */
  finish(): void {
    this.#record(false, () => undefined);
  }

  #record(aborted: boolean, onPersisted: () => void): void {
    if (this.#isRecorded || !this.#onEnd) {
      onPersisted();
      return;
    }
    this.#isRecorded = true;
    this.#onEnd(aborted, onPersisted);
  }

  #tapRequest(): void {
    const push = this.#req.push;
    let chunks = 0;
    let bytes = 0;
    const tapped = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (Buffer.isBuffer(chunk)) {
        chunks += 1;
        bytes += chunk.length;
        // Bytes that arrive after the response are discarded.
        if (!this.#isRecorded) this.request.push(chunk);
      }
      if (chunks === CHUNKS) {
        if (bytes < MIN_BYTES && this.#onTinyChunks) {
          // The parser continues to the end of the bytes that were read; their chunks are dropped.
          this.#req.push = dropped;
          this.#req.socket.destroy();
          this.#onTinyChunks();
          return true;
        }
        chunks = 0;
        bytes = 0;
      }
      return push.call(this.#req, chunk, encoding);
    };
    this.#req.push = tapped;
  }

  #tapResponse(): void {
    const { method, socket } = this.#req;
    const record = (chunk: unknown, encoding: unknown): unknown => {
      const bytes = bytesOf(chunk, encoding);
      if (Buffer.isBuffer(bytes) && method !== 'HEAD') this.response.push(bytes);
      return bytes;
    };
    const tappedWrite = (chunk: unknown, ...writeArgs: unknown[]): boolean => {
      if (this.isEnded) return false;
      const args = [record(chunk, writeArgs[0]), ...writeArgs];
      if (!this.#isComplete()) return Reflect.apply(this.#write, this.#res, args);
      this.#lastWrite ??= args;
      return true;
    };
    const tappedEnd = (chunk?: unknown, ...endArgs: unknown[]): ServerResponse => {
      if (this.isEnded) return this.#res;
      this.isEnded = true;
      if (this.response.totalBytes === 0 && isShortAscii(chunk, endArgs[0])) {
        if (method !== 'HEAD') this.response.pushText(chunk);
        this.#record(socket.destroyed, () => this.#finish([chunk, 'latin1', ...onSentOf(endArgs)]));
        return this.#res;
      }
      const last =
        chunk === undefined || chunk === null || typeof chunk === 'function' ? chunk : record(chunk, endArgs[0]);
      const [body, ...otherArgs] = [...(this.#lastWrite ?? []), last, ...endArgs];
      const args = Buffer.isBuffer(body) ? asOneWrite(body, otherArgs) : [body, ...otherArgs];
      // A handler may respond to the loss of its client before the response object notices it.
      this.#record(socket.destroyed, () => this.#finish(args));
      return this.#res;
    };
    this.#res.write = tappedWrite as ServerResponse['write'];
    this.#res.end = tappedEnd as ServerResponse['end'];
  }

  #finish(args: readonly unknown[]): void {
    try {
      withoutContext(() => Reflect.apply(this.#end, this.#res, args));
    } catch (error) {
      // The response cannot be sent: the client must not wait for it.
      this.#res.destroy();
      throw error;
    }
  }

  /** Checks whether the response has as many bytes as its Content-Length. */
  #isComplete(): boolean {
    const length = this.#res.getHeader('content-length');
    return length !== undefined && this.response.totalBytes >= Number(length);
  }
}

function dropped(): boolean {
  return true;
}

function bytesOf(chunk: unknown, encoding: unknown): unknown {
  if (typeof chunk === 'string') {
    return Buffer.from(chunk, typeof encoding === 'string' && Buffer.isEncoding(encoding) ? encoding : 'utf8');
  }
  return Buffer.isBuffer(chunk) || !(chunk instanceof Uint8Array)
    ? chunk
    : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

/**
 * Returns the arguments of `end`, with a short body as Latin-1 text: Node sends that in one write with the headers,
 * byte for byte. A buffer would cost a second write, and UTF-8 text would send the headers in that encoding.
 */
function asOneWrite(bytes: Buffer, otherArgs: readonly unknown[]): unknown[] {
  return [...(bytes.length > ONE_WRITE_BYTES ? [bytes] : [bytes.toString('latin1'), 'latin1']), ...onSentOf(otherArgs)];
}

/** Checks whether a chunk is a text that is the same bytes in UTF-8 and in Latin-1, and short enough for one write. */
function isShortAscii(chunk: unknown, encoding: unknown): chunk is string {
  if (typeof encoding === 'string' && encoding !== 'utf8') return false;
  return typeof chunk === 'string' && chunk.length <= ONE_WRITE_BYTES && Buffer.byteLength(chunk) === chunk.length;
}

/** Returns the callback among the arguments of a write, if any; one that calls all, if there are several. */
function onSentOf(args: readonly unknown[]): unknown[] {
  const callbacks = args.filter((argument) => typeof argument === 'function');
  return callbacks.length > 0 ? [() => callbacks.forEach((callback) => void callback())] : [];
}

/** Checks whether a request has a body, by its header fields (RFC 9112 section 6.3). */
export function announcesBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
