import type { Duplex } from 'node:stream';
import { handleProtocols, type Server } from 'graphql-ws';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { Log } from '../../../lib/log.ts';
import { inRequest } from '../../../platform/database/tenant-db.ts';
import { invalidRequest } from '../../../platform/errors.ts';
import { type OperationRecord, type SocketExtra, SocketOperations } from './socket-operations.ts';

const FINAL_TEXT = 0x81;
/**
 * The values of a frame's second byte that announce a length of two or eight bytes after it (RFC 6455, section 5.2).
 */
const IN_TWO_BYTES = 126;
const IN_EIGHT_BYTES = 127;
const MAX_SHORT = 125;
const MAX_TWO_BYTES = 0xffff;

/** Returns a text message as one unmasked frame whose payload is the pieces in their order (RFC 6455, section 5.2). */
export function textFrame(pieces: readonly Buffer[]): Buffer {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const frame = Buffer.allocUnsafe(headBytes(length) + length);
  frame[0] = FINAL_TEXT;
  let at = writeLength(frame, length);
  for (const piece of pieces) at += piece.copy(frame, at);
  return frame;
}

function headBytes(length: number): number {
  if (length <= MAX_SHORT) return 2;
  return length <= MAX_TWO_BYTES ? 4 : 10;
}

/** Writes the length of the payload into the frame's header, and returns the offset at which the payload begins. */
function writeLength(frame: Buffer, length: number): number {
  if (length <= MAX_SHORT) return frame.writeUInt8(length, 1);
  if (length <= MAX_TWO_BYTES) {
    frame[1] = IN_TWO_BYTES;
    return frame.writeUInt16BE(length, 2);
  }
  frame[1] = IN_EIGHT_BYTES;
  return frame.writeBigUInt64BE(BigInt(length), 2);
}

/**
 * Returns a function that writes a message to the socket directly, in one write. The ws library would need two, and
 * would encode the text that subscribers share once for each of them. Since ws writes whole frames only, both can be
 * used side by side.
 */
export function sender(socket: WebSocket, raw: Duplex): (pieces: readonly Buffer[]) => Promise<void> | undefined {
  let waiting: (() => void)[] = [];
  const goOn = () => {
    const resolves = waiting;
    waiting = [];
    for (const resolve of resolves) resolve();
  };
  raw.on('drain', goOn);
  raw.on('close', goOn);
  return (pieces) => {
    if (socket.readyState !== WebSocket.OPEN || raw.destroyed) return undefined;
    if (raw.write(textFrame(pieces))) return undefined;
    return new Promise((resolve) => {
      waiting.push(resolve);
    });
  };
}

const MAX_FRAME_BYTES = 64 * 1024;
const PING_MS = 12_000;
/**
 * The number of bytes that may wait to be sent on a socket before it is paused, so that no more messages are read from
 * it.
 */
const MAX_UNSENT_BYTES = 1_048_576;
const CLOSE_WAIT_MS = 1_000;
const INTERNAL_ERROR = 4500;
const SERVICE_RESTART = 1012;

const NOT_ACCEPTABLE = 'must be as RFC 6455 has it';
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const EXTENSION = `${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}(?:[ \\t]*=[ \\t]*(?:${TOKEN}|"(?:\\\\?[\\w!#$%&'*+.^\`|~-])+"))?)*`;
/** Matches the header field Sec-WebSocket-Extensions (RFC 6455, section 9.1). */
const EXTENSIONS = new RegExp(`^${EXTENSION}(?:[ \\t]*,[ \\t]*${EXTENSION})*$`);

interface SocketsParts {
  protocol: Server<SocketExtra>;
  recordOperation(record: OperationRecord): void;
  log: Log;
}

/** Holds the open WebSockets of GraphQL, pings them, and closes them on stop. */
export class GraphqlSockets {
  readonly #parts: SocketsParts;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
    handleProtocols,
  });
  readonly #answered = new WeakSet<WebSocket>();
  readonly #operations = new WeakMap<WebSocket, SocketOperations>();
  #isStopping = false;
  #pings: NodeJS.Timeout | undefined;

  constructor(parts: SocketsParts) {
    this.#parts = parts;
    this.#server.on('headers', (headers, req) => {
      headers.push(`X-Correlation-ID: ${String(req.headers['x-correlation-id'])}`);
    });
    // Emitted synchronously by `handleUpgrade`. With a listener, ws sends no error response itself.
    this.#server.on('wsClientError', ({ message }) => {
      throw invalidRequest([{ path: /Sec-WebSocket-\w+|Upgrade/.exec(message)?.[0] ?? '', message: NOT_ACCEPTABLE }]);
    });
  }

  /**
   * Completes the WebSocket handshake of an upgrade request.
   * @throws AppError 400 naming the header field that makes the handshake invalid; nothing has been sent then.
   */
  accept(exchange: Exchange): void {
    const { upgrade, req, res } = exchange;
    if (!upgrade) throw new Error('the request is no upgrade');
    // No extension is negotiated, so ws does not validate this field.
    if (!EXTENSIONS.test(req.headers['sec-websocket-extensions'] ?? 'none')) {
      throw invalidRequest([{ path: 'Sec-WebSocket-Extensions', message: NOT_ACCEPTABLE }]);
    }
    this.#server.handleUpgrade(req, upgrade.socket, upgrade.head, (socket) => {
      res.statusCode = 101;
      // From here on, closing the connection does not count as a client that disconnected before its response.
      if (res.socket) res.detachSocket(req.socket);
      this.#open(socket, exchange, upgrade.socket);
    });
  }

  /**
   * Stops accepting operations and closes every socket with 1012, so that clients reconnect, once its queries and
   * mutations are answered. Sockets that do not confirm the close within a second are terminated.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([...this.#server.clients].map((socket) => this.#close(socket)));
  }

  async #close(socket: WebSocket): Promise<void> {
    const closed = Promise.withResolvers<void>();
    socket.once('close', () => closed.resolve());
    await Promise.race([this.#operations.get(socket)?.noneWaiting(), closed.promise]);
    socket.close(SERVICE_RESTART, 'Service Restart');
    const cut = setTimeout(() => socket.terminate(), CLOSE_WAIT_MS);
    await closed.promise;
    clearTimeout(cut);
  }

  #open(socket: WebSocket, exchange: Exchange, raw: Duplex): void {
    const { protocol, recordOperation, log } = this.#parts;
    // Resolves when the frame is sent, so that a slow client slows its subscriptions instead of filling memory.
    const send = (data: string) => new Promise<void>((resolve) => socket.send(data, () => resolve()));
    const operations = new SocketOperations(exchange, recordOperation);
    this.#operations.set(socket, operations);
    // Any message, including a ping, may cause a response: a client that reads none of them is paused, so its pongs are
    // not read either.
    const slowDown = () => socket.bufferedAmount > MAX_UNSENT_BYTES && socket.pause();
    socket.on('ping', slowDown);
    raw.on('drain', () => socket.resume());
    const extra: SocketExtra = {
      exchange,
      principal: undefined,
      operations,
      send: sender(socket, raw),
      close: (code, reason) => socket.close(code, reason),
    };
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send,
        close: (code, reason) => socket.close(code, reason),
        onMessage: (handle) => {
          socket.on('message', (data: RawData) => {
            slowDown();
            // The client sends the operation again after it has reconnected.
            if (this.#isStopping) return;
            const handled = inRequest(
              () => extra.principal?.nodeId,
              () => handle(String(data)),
            );
            handled.catch((err: unknown) => {
              log.error({ correlation_id: exchange.correlationId, err }, 'a socket message failed');
              socket.close(INTERNAL_ERROR, 'Internal server error');
            });
          });
        },
      },
      extra,
    );
    // ws itself closes the socket after a frame that is too long or malformed.
    socket.on('error', (err) => log.debug({ correlation_id: exchange.correlationId, err }, 'a socket broke'));
    socket.on('close', (code, reason) => {
      if (this.#server.clients.size === 0) {
        clearInterval(this.#pings);
        this.#pings = undefined;
      }
      void closed(code, String(reason));
      exchange.audit.capture.finish();
    });
    this.#answered.add(socket);
    socket.on('pong', () => this.#answered.add(socket));
    this.#pings ??= setInterval(() => this.#ping(), PING_MS);
  }

  #ping(): void {
    for (const socket of this.#server.clients) {
      if (!this.#answered.delete(socket)) socket.terminate();
      else socket.ping();
    }
  }
}
