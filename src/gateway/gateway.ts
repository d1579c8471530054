import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { invalidRequest, notFound } from '../errors/app-error.ts';
import { errorEnvelope } from '../errors/envelope.ts';
import type { Log } from '../lib/log.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { refuse } from '../rest/refuse.ts';
import type { Unparsed } from './audit.ts';
import { ConnectionOrder } from './connection-order.ts';
import { enter, type TrustedPeers } from './door.ts';
import { Exchange } from './exchange.ts';
import { limitPieces } from './piece-limit.ts';
import { runStages, type Stage } from './stage.ts';
import { NOT_HTTP, type ParserError, unparsedHead } from './unparsed-head.ts';

interface GatewayParts {
  /** The one to begin with. */
  chain: readonly Stage[];
  trusts: TrustedPeers;
  cors(exchange: Exchange): void;
  /** Whether no audit record can be kept: health apart, nothing is answered then. */
  isAuditFull(): boolean;
  onEnd(exchange: Exchange, aborted: boolean, kept: () => void): void;
  /** Runs a request, which begins with it. */
  around?(exchange: Exchange, run: () => void): void;
  /** Told that a connection was closed for the requests that wait on it, or for the chunks of a body. */
  onClosed?(reason: 'pipeline' | 'chunks'): void;
  /** Told of what was no HTTP; its answer is sent when `kept` is called. */
  onUnparsed(unparsed: Unparsed, kept: () => void): void;
  log: Log;
}

/** What Node reports of a connection that its client has left. */
const GONE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE']);

/** The single ingress: every request and every upgrade passes the chain, and every refusal is rendered here. */
export class Gateway {
  readonly #parts: GatewayParts;
  #chain: readonly Stage[];
  readonly #order = new ConnectionOrder();

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#chain = parts.chain;
  }

  /** Requests from now on pass this chain; those that have begun pass theirs to its end. */
  use(chain: readonly Stage[]): void {
    this.#chain = chain;
  }

  /** Takes a request, once those before it on its connection are answered. */
  request(req: IncomingMessage, res: ServerResponse): void {
    if (!this.#admits(req)) return;
    // What came behind an upgrade that is not taken is lost to the parser: nothing may follow on this connection.
    if (req.headers.upgrade !== undefined) res.shouldKeepAlive = false;
    limitPieces(req, res, () => this.#parts.onClosed?.('chunks'));
    const exchange = new Exchange(req, res);
    this.#order.enter(exchange, () => this.#run(exchange));
  }

  /** Takes a WebSocket upgrade; a refusal is answered on the raw socket as an ordinary response. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!this.#admits(req)) return;
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.once('finish', () => socket.end());
    socket.on('error', () => socket.destroy());
    const exchange = new Exchange(req, res, { socket, head });
    this.#order.enter(exchange, () => {
      res.assignSocket(req.socket);
      this.#run(exchange);
    });
  }

  /**
   * Answers what is no HTTP request: as the refusal of the request whose body it broke, else with an envelope of its
   * own, since there is nothing to run the chain on. What came in full before is answered first, and nothing behind it.
   * A client that has gone is not answered.
   */
  malformed(error: ParserError, socket: Duplex): void {
    if (GONE.has(error.code ?? '') || !socket.writable) {
      socket.destroy();
      return;
    }
    const latest = this.#order.latest(socket);
    if (!latest || (latest.req.complete && latest.res.closed))
      this.#answerUnparsed(error, socket, latest === undefined);
    else if (latest.req.complete || latest.isAnswered) this.#order.endAfter(latest);
    else {
      latest.isBroken = true;
      // One whose turn is still to come is refused then.
      if (latest.hasBegun) refuse(latest, invalidRequest([NOT_HTTP]), this.#parts.log);
    }
  }

  /**
   * Closes the connection of a client that asks on without an answer: what is under way ends as for one that has left, what
   * waits never begins.
   */
  #admits(req: IncomingMessage): boolean {
    if (this.#order.hasRoom(req.socket)) return true;
    if (!req.socket.destroyed) this.#parts.onClosed?.('pipeline');
    req.socket.destroy();
    // The parser goes on to the end of what was read; Node would end each of these with an error, which costs more than all else.
    req.destroy();
    return false;
  }

  #answerUnparsed(error: ParserError, socket: Duplex, isFirst: boolean): void {
    const refusal = error.code === 'HPE_INVALID_URL' ? notFound() : invalidRequest([NOT_HTTP]);
    const { correlationId = uuidV7(), method, target } = unparsedHead(isFirst ? error : {});
    const body = JSON.stringify(errorEnvelope(refusal));
    const head = [
      `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
      `X-Correlation-ID: ${correlationId}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
    ];
    const { remoteAddress = '' } = socket as Socket;
    const unparsed = { correlationId, method, target, status: refusal.status, body, remoteAddress };
    this.#parts.onUnparsed(unparsed, () => socket.end(Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1')));
  }

  #run(exchange: Exchange): void {
    exchange.hasBegun = true;
    enter(exchange, this.#parts.trusts);
    exchange.isUnrecordable = this.#parts.isAuditFull();
    this.#parts.cors(exchange);
    const { around } = this.#parts;
    if (around) around(exchange, () => this.#pass(exchange));
    else this.#pass(exchange);
  }

  #pass(exchange: Exchange): void {
    runStages(this.#chain, exchange).catch((error: unknown) => {
      exchange.correlationId ||= uuidV7();
      exchange.capture.install((aborted, kept) => this.#parts.onEnd(exchange, aborted, kept));
      refuse(exchange, error, this.#parts.log);
    });
  }
}
