import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { announcesBody } from '../exchange/capture.ts';
import { type Exchange, sendContinue } from '../exchange/exchange.ts';
import { lingerOnClose } from '../exchange/responses.ts';
import { BadResponseError, eachResponseField } from './headers.ts';

/**
 * Streams the body of a request to an upstream, at the pace of the upstream. Reads nothing, and sends no 100 Continue,
 * before the upstream's connection asks for the body.
 */
export class RequestBody extends Readable {
  readonly #deps;
  #isBegun = false;
  #isWanted = false;
  #bytes = 0;

  constructor(deps: {
    exchange: Exchange;
    /** The longest body accepted, in bytes; 0 means no limit. */
    maxBytes: number;
    onProgress(): void;
    onTooLong(): void;
  }) {
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

/** The longest body, in bytes, that is sent in one write with its head, if it arrived in one chunk. */
const ONE_PIECE_BYTES = 64 * 1024;

/** The interim responses of a request that are passed on at most: their number, and the characters of their fields. */
const MAX_INTERIM = { responses: 8, characters: 16 * 1024 };

/** Streams the response of an upstream to the client, at the pace of the client, without buffering. */
export class UpstreamResponse {
  readonly #deps;
  /** The names of the header fields that come from the upstream. */
  readonly #passed: string[] = [];
  /** The interim responses that have arrived. */
  readonly #interim: typeof MAX_INTERIM = { responses: 0, characters: 0 };
  #length = -1;
  #whole: Buffer | undefined;
  #stall: NodeJS.Timeout | undefined;

  /** Creates the response. `onStall` is called when the client has read nothing for `idleMs` milliseconds. */
  constructor(exchange: Exchange, idleMs: number, onStall: () => void) {
    this.#deps = { exchange, idleMs, onStall };
  }

  /**
   * Passes on an interim response if the client's version of HTTP has them (RFC 9110 section 15.2). They are not sent
   * at the pace of the client, so those beyond a limit are dropped.
   */
  inform(status: number, headers: IncomingHttpHeaders): void {
    const { req, res, upgrade, held } = this.#deps.exchange;
    if (status < 102 || req.httpVersion !== '1.1' || res.headersSent || upgrade) return;
    if (this.#interim.responses === MAX_INTERIM.responses) return;
    const fields: [string, string | string[]][] = [];
    eachResponseField(headers, (name, value) => fields.push([name, value]));
    const { length } = String(fields);
    this.#interim.responses += 1;
    this.#interim.characters += length;
    // A request that is refused for what it holds has had its response.
    if (this.#interim.characters > MAX_INTERIM.characters || held?.charge(length) === false) return;
    res.writeInformation(status, Object.fromEntries(fields));
  }

  /**
   * Passes on the head of a response: together with a body that follows immediately, otherwise separately.
   * @throws BadResponseError or TypeError for a head that cannot be passed on.
   */
  begin(status: number, headers: IncomingHttpHeaders): void {
    const { req, res } = this.#deps.exchange;
    const coding = headers['transfer-encoding'];
    // Chunked coding has been decoded already; the request asked for no other coding.
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw new BadResponseError('its transfer-coding');
    if (status > 599) throw new BadResponseError('its status');
    res.statusCode = status;
    eachResponseField(headers, (name, value) => this.#pass(name, value));
    if (status === 204) res.removeHeader('content-length');
    if (!req.complete && announcesBody(req)) {
      // The upstream has responded without reading the rest of the body.
      res.setHeader('Connection', 'close');
      lingerOnClose(this.#deps.exchange);
    }
    const length = headers['content-length'];
    this.#length = typeof length === 'string' && Number(length) <= ONE_PIECE_BYTES ? Number(length) : -1;
    process.nextTick(flush, this.#deps.exchange);
  }

  /** Passes on a chunk of the body; pauses the upstream while the client does not read. */
  data(controller: Pick<Dispatcher.DispatchController, 'pause' | 'resume'>, chunk: Buffer): void {
    const { res } = this.#deps.exchange;
    if (chunk.length === this.#length) {
      this.#whole = chunk;
      return;
    }
    if (res.write(chunk) || this.#stall) return;
    controller.pause();
    this.#stall = setTimeout(this.#deps.onStall, this.#deps.idleMs);
    res.once('drain', () => {
      this.stop();
      controller.resume();
    });
  }

  /** Completes the response to the client. */
  end(): void {
    const { res } = this.#deps.exchange;
    if (this.#whole) res.end(this.#whole);
    else res.end();
  }

  /** Removes the upstream's header fields, if they were not sent yet, before an error response replaces them. */
  revoke(): void {
    const { res } = this.#deps.exchange;
    if (!res.headersSent) for (const name of this.#passed) res.removeHeader(name);
  }

  /** Stops the timer that waits for the client to read. */
  stop(): void {
    clearTimeout(this.#stall);
    this.#stall = undefined;
  }

  /** Sets a header field unless the gateway has set it; values of `Vary` are combined. */
  #pass(name: string, value: string | string[]): void {
    const { res } = this.#deps.exchange;
    if (!res.hasHeader(name)) this.#passed.push(name);
    else if (name !== 'vary') return;
    if (name === 'vary') res.appendHeader(name, value);
    else res.setHeader(name, value);
  }
}

/** Sends the head of a response if no body has followed it yet. */
function flush({ isAnswered, res }: Exchange): void {
  if (!isAnswered && !res.destroyed) res.flushHeaders();
}

const KEEP_ALIVE_MS = 60_000;

/**
 * Accepts a client's WebSocket upgrade (RFC 6455 section 4.2.2), and passes on the bytes of either side at the pace of
 * the other. Calls `onEnd` once both connections are closed; `stop` of the result closes them.
 */
export function openTunnel(exchange: Exchange, headers: IncomingHttpHeaders, upstream: Duplex, onEnd: () => void) {
  const { req, res, upgrade } = exchange;
  if (!upgrade) throw new Error('the request is not an upgrade');
  const client = upgrade.socket;
  const lines = [`X-Correlation-ID: ${String(req.headers['x-correlation-id'])}`];
  eachResponseField(headers, (name, value) => {
    if (name === 'content-length') return;
    for (const item of Array.isArray(value) ? value : [value]) lines.push(`${name}: ${item}`);
  });
  res.statusCode = 101;
  res.detachSocket(req.socket);
  const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${lines.join('\r\n')}`;
  client.write(`${head}\r\n\r\n`, 'latin1');
  for (const socket of [req.socket, upstream]) keepAlive(socket);
  if (upgrade.head.length > 0) upstream.write(upgrade.head);
  client.pipe(upstream);
  upstream.pipe(client);

  let open = 2;
  const close = () => {
    client.destroy();
    upstream.destroy();
    open -= 1;
    if (open > 0) return;
    exchange.audit.capture.finish();
    onEnd();
  };
  for (const side of [client, upstream]) {
    side.on('error', () => side.destroy());
    side.once('close', close);
  }
  return { stop: () => void client.destroy() };
}

/** Turns on TCP keep-alive, so that the kernel detects a peer that has vanished. */
function keepAlive(socket: Duplex): void {
  const isSocket = (duplex: Duplex): duplex is Socket => 'setKeepAlive' in duplex;
  if (!isSocket(socket)) return;
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  socket.setNoDelay(true);
  socket.setTimeout(0);
}
