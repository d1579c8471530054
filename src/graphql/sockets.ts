import type { Duplex } from 'node:stream';
import { handleProtocols, type Server } from 'graphql-ws';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import { invalidRequest } from '../errors/app-error.ts';
import type { Exchange } from '../gateway/exchange.ts';
import type { Log } from '../lib/log.ts';
import { forRequest } from '../lib/tenant-db.ts';
import { type OperationRecord, OperationRecords } from './operation-records.ts';
import type { SocketExtra } from './socket-operations.ts';
import { sender } from './socket-sender.ts';
import { Unanswered } from './unanswered.ts';

const MAX_FRAME_BYTES = 64 * 1024;
const PING_MS = 12_000;
/** What may wait for a reader before nothing more is taken from it. */
const MAX_UNSENT_BYTES = 1_048_576;
const CLOSE_WAIT_MS = 1_000;
const INTERNAL_ERROR = 4500;
const SERVICE_RESTART = 1012;

const NOT_ACCEPTABLE = 'must be as RFC 6455 has it';
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const EXTENSION = `${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}(?:[ \\t]*=[ \\t]*(?:${TOKEN}|"(?:\\\\?[\\w!#$%&'*+.^\`|~-])+"))?)*`;
/** The field Sec-WebSocket-Extensions (RFC 6455 section 9.1). */
const EXTENSIONS = new RegExp(`^${EXTENSION}(?:[ \\t]*,[ \\t]*${EXTENSION})*$`);

interface SocketsParts {
  protocol: Server<SocketExtra>;
  recordOperation(record: OperationRecord): void;
  log: Log;
}

/** The WebSockets that are open. */
export class GraphqlSockets {
  readonly #parts: SocketsParts;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
    handleProtocols,
  });
  readonly #answered = new WeakSet<WebSocket>();
  readonly #unanswered = new WeakMap<WebSocket, Unanswered>();
  #isStopping = false;
  #pings: NodeJS.Timeout | undefined;

  constructor(parts: SocketsParts) {
    this.#parts = parts;
    this.#server.on('headers', (headers, req) => {
      headers.push(`X-Correlation-ID: ${String(req.headers['x-correlation-id'])}`);
    });
    // Told while `accept` runs: with a listener the library sends no answer of its own.
    this.#server.on('wsClientError', ({ message }) => {
      throw invalidRequest([{ path: /Sec-WebSocket-\w+|Upgrade/.exec(message)?.[0] ?? '', message: NOT_ACCEPTABLE }]);
    });
  }

  /**
   * Takes an upgrade over.
   * @throws AppError 400 that names the field which makes it no handshake of WebSocket; nothing is sent then.
   */
  accept(exchange: Exchange): void {
    const { upgrade, req, res } = exchange;
    if (!upgrade) throw new Error('the request is no upgrade');
    // No extension is negotiated, so that the library does not look at them.
    if (!EXTENSIONS.test(req.headers['sec-websocket-extensions'] ?? 'none')) {
      throw invalidRequest([{ path: 'Sec-WebSocket-Extensions', message: NOT_ACCEPTABLE }]);
    }
    this.#server.handleUpgrade(req, upgrade.socket, upgrade.head, (socket) => {
      res.statusCode = 101;
      // From here on its end is no loss of the client.
      if (res.socket) res.detachSocket(req.socket);
      this.#open(socket, exchange, upgrade.socket);
    });
  }

  /**
   * Closes every socket with 1012, so that clients come back, once its queries and mutations are answered; it takes no
   * further ones. Those that do not answer the close are cut.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([...this.#server.clients].map((socket) => this.#close(socket)));
  }

  async #close(socket: WebSocket): Promise<void> {
    const closed = Promise.withResolvers<void>();
    socket.once('close', () => closed.resolve());
    await Promise.race([this.#unanswered.get(socket)?.none(), closed.promise]);
    socket.close(SERVICE_RESTART, 'Service Restart');
    const cut = setTimeout(() => socket.terminate(), CLOSE_WAIT_MS);
    await closed.promise;
    clearTimeout(cut);
  }

  #open(socket: WebSocket, exchange: Exchange, raw: Duplex): void {
    const { protocol, recordOperation, log } = this.#parts;
    // Resolves when the frame is out: a reader that is slow slows its subscriptions, not the memory of this process.
    const send = (data: string) => new Promise<void>((resolve) => socket.send(data, () => resolve()));
    const unanswered = new Unanswered();
    this.#unanswered.set(socket, unanswered);
    // Each message may be answered, pings as well: whoever does not read them sends no more, and no pong.
    const slowDown = () => socket.bufferedAmount > MAX_UNSENT_BYTES && socket.pause();
    socket.on('ping', slowDown);
    raw.on('drain', () => socket.resume());
    const extra: SocketExtra = {
      exchange,
      principal: undefined,
      records: new OperationRecords({ exchange, record: recordOperation }),
      unanswered,
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
            // Whoever sent it sends it again where it comes back to.
            if (this.#isStopping) return;
            const handled = forRequest(
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
    // A frame over the limit, or a broken one: ws closes the socket itself.
    socket.on('error', (err) => log.debug({ correlation_id: exchange.correlationId, err }, 'a socket broke'));
    socket.on('close', (code, reason) => {
      this.#leave();
      void closed(code, String(reason));
      exchange.capture.finish();
    });
    this.#enter(socket);
  }

  #enter(socket: WebSocket): void {
    this.#answered.add(socket);
    socket.on('pong', () => this.#answered.add(socket));
    this.#pings ??= setInterval(() => {
      for (const client of this.#server.clients) this.#ping(client);
    }, PING_MS);
  }

  #ping(socket: WebSocket): void {
    if (!this.#answered.delete(socket)) socket.terminate();
    else socket.ping();
  }

  #leave(): void {
    if (this.#server.clients.size > 0) return;
    clearInterval(this.#pings);
    this.#pings = undefined;
  }
}
