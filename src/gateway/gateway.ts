import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { invalidRequest, notFound } from '../errors/app-error.ts';
import { errorEnvelope } from '../errors/envelope.ts';
import type { Log } from '../lib/log.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { refuse } from '../rest/refuse.ts';
import { enter, type TrustedPeers } from './door.ts';
import { Exchange } from './exchange.ts';
import { runStages, type Stage } from './stage.ts';

interface GatewayParts {
  /** The one to begin with. */
  chain: readonly Stage[];
  trusts: TrustedPeers;
  cors(exchange: Exchange): void;
  /** Whether no audit record can be kept: health apart, nothing is answered then. */
  isAuditFull(): boolean;
  onEnd(exchange: Exchange, aborted: boolean, kept: () => void): void;
  log: Log;
}

/** What Node reports of a connection that its client has left. */
const GONE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE']);
const NOT_HTTP = { path: '', message: 'must be well-formed HTTP' };

/** The single ingress: every request and every upgrade passes the chain, and every refusal is rendered here. */
export class Gateway {
  readonly #parts: GatewayParts;
  #chain: readonly Stage[];
  /** The latest request of each connection. */
  readonly #current = new WeakMap<Duplex, Exchange>();
  /** Connections that end with the answer under way. */
  readonly #ending = new WeakSet<Duplex>();

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#chain = parts.chain;
  }

  /** Requests from now on pass this chain; those that have begun pass theirs to its end. */
  use(chain: readonly Stage[]): void {
    this.#chain = chain;
  }

  /** Takes a request. */
  request(req: IncomingMessage, res: ServerResponse): void {
    // Nothing behind an answer that ends the connection is taken (RFC 9112 section 9.6).
    if (this.#current.get(req.socket)?.res.shouldKeepAlive === false) return;
    // What came behind an upgrade that is not taken is lost to the parser: nothing may follow on this connection.
    if (req.headers.upgrade !== undefined) res.shouldKeepAlive = false;
    this.#run(new Exchange(req, res));
  }

  /** Takes a WebSocket upgrade; a refusal is answered on the raw socket as an ordinary response. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(req.socket);
    res.once('finish', () => socket.end());
    socket.on('error', () => socket.destroy());
    this.#run(new Exchange(req, res, { socket, head }));
  }

  /**
   * Answers what is no HTTP request: as the refusal of the request whose body it broke, else with an envelope of its
   * own, since there is nothing to run the chain on. What came in full before is answered first, and nothing behind it.
   * A client that has gone is not answered.
   */
  malformed(error: Error & { code?: string }, socket: Duplex): void {
    if (GONE.has(error.code ?? '') || !socket.writable) {
      socket.destroy();
      return;
    }
    const refusal = error.code === 'HPE_INVALID_URL' ? notFound() : invalidRequest([NOT_HTTP]);
    const current = this.#current.get(socket);
    if (current?.req.complete && !current.res.writableFinished) {
      this.#endAfter(current.res, socket);
      return;
    }
    if (current && !current.isAnswered) {
      current.isBroken = true;
      refuse(current, refusal, this.#parts.log);
      return;
    }
    const correlationId = uuidV7();
    this.#parts.log.info({ correlation_id: correlationId, code: error.code, status: refusal.status }, 'no request');
    const body = JSON.stringify(errorEnvelope(refusal));
    const head = [
      `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
      `X-Correlation-ID: ${correlationId}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  }

  /** Lets an answer be the last of its connection. */
  #endAfter(res: ServerResponse, socket: Duplex): void {
    if (this.#ending.has(socket)) return;
    this.#ending.add(socket);
    if (!res.headersSent) res.setHeader('Connection', 'close');
    res.once('close', () => socket.end());
  }

  #run(exchange: Exchange): void {
    this.#current.set(exchange.req.socket, exchange);
    enter(exchange, this.#parts.trusts);
    exchange.isUnrecordable = this.#parts.isAuditFull();
    this.#parts.cors(exchange);
    runStages(this.#chain, exchange).catch((error: unknown) => {
      exchange.correlationId ||= uuidV7();
      exchange.capture.install((aborted, kept) => this.#parts.onEnd(exchange, aborted, kept));
      refuse(exchange, error, this.#parts.log);
    });
  }
}
