import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '../lib/log.ts';
import { runSteps } from '../lib/steps.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { invalidRequest } from '../platform/errors.ts';
import type { Stage } from './chain.ts';
import { limitChunks, PipelinedRequests } from './connections.ts';
import { Exchange } from './exchange/exchange.ts';
import { settleClientAddress, type TrustedPeers } from './exchange/request-head.ts';
import { refuse } from './exchange/responses.ts';
import { NOT_HTTP, type ParserError, readUnparsed, type Unparsed, unparsedResponse } from './exchange/unparsed.ts';
import type { FlagsByPath } from './table/endpoint-flags.ts';

const MAX_REQUEST_MS = 3_600_000;
/** Large enough for the chain, not the parser, to refuse an overlong token. */
const MAX_HEADER_BYTES = 160 * 1024;

/** How long a connection may be idle, in milliseconds. */
export interface ConnectionTimes {
  /** From its first byte, or from its opening, until a head is complete. */
  headMs: number;
  /** From a response to the next request. */
  idleMs: number;
  /** How often the timeout of heads is checked. */
  checkEveryMs: number;
}

// Longer than the 60 seconds for which load balancers keep connections: if this end closed first, a request could be
// lost.
const TIMES: ConnectionTimes = { headMs: 60_000, idleMs: 75_000, checkEveryMs: 5_000 };

/** Creates the public listener, whose only way in is the gateway. */
export function ingress(gateway: Gateway, { headMs, idleMs, checkEveryMs }: ConnectionTimes = TIMES): Server {
  // Any other upgrade is only an offer: the request is answered as it is (RFC 9110 section 7.8).
  const options = {
    requireHostHeader: false,
    shouldUpgradeCallback: isWebSocketUpgrade,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Uploads are long: whoever reads a body limits how long it may take.
    requestTimeout: MAX_REQUEST_MS,
    headersTimeout: headMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: checkEveryMs,
  };
  const server = createServer(options, (req, res) => gateway.request(req, res));
  server.on('upgrade', (req, socket, head) => gateway.upgrade(req, socket, head));
  // CONNECT is refused, and recorded, like any other request.
  server.on('connect', (req, socket, head) => gateway.upgrade(req, socket, head));
  // 100 Continue is sent where a body is read; other expectations are met by the response.
  server.on('checkContinue', (req, res) => server.emit('request', req, res));
  server.on('checkExpectation', (req, res) => server.emit('request', req, res));
  server.on('clientError', (error, socket) => gateway.malformed(error, socket));
  return server;
}

/** Returns whether a request asks for a WebSocket that can be opened (RFC 6455 section 4.2.1). */
function isWebSocketUpgrade({ method, headers, httpVersion }: IncomingMessage): boolean {
  const { upgrade, 'sec-websocket-key': key, 'sec-websocket-version': version } = headers;
  if (httpVersion !== '1.1') return false;
  return method === 'GET' && upgrade?.toLowerCase() === 'websocket' && version === '13' && isWebSocketKey(key);
}

function isWebSocketKey(key: string | undefined): boolean {
  return key !== undefined && /^[+/0-9A-Za-z]{22}==$/.test(key);
}

interface GatewayParts {
  /** The chain of the first endpoint table. */
  chain: readonly Stage[];
  trusts: TrustedPeers;
  /** What the routes say of their paths. */
  flags?: FlagsByPath;
  cors(exchange: Exchange): void;
  /** Returns whether no audit record can be stored: only health is answered then. */
  isAuditFull(): boolean;
  onEnd(exchange: Exchange, aborted: boolean, kept: () => void): void;
  /** Runs a request within what surrounds it, such as its span. */
  around?(exchange: Exchange, run: () => void): void;
  /** Called when a connection was closed because too many requests wait on it, or for the chunks of a body. */
  onClosed?(reason: 'pipeline' | 'chunks'): void;
  /** Called for bytes that are no HTTP; the response is sent when `kept` is called. */
  onUnparsed(unparsed: Unparsed, kept: () => void): void;
  log: Log;
}

/** Node's error codes for a connection that its client has left. */
const GONE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE']);

/** The single way in: every request and every upgrade passes the chain, and refusals are answered here. */
export class Gateway {
  readonly #parts: GatewayParts;
  #chain: readonly Stage[];
  readonly #pipelined = new PipelinedRequests();

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#chain = parts.chain;
  }

  /** Replaces the chain. Requests that have begun pass the old one. */
  use(chain: readonly Stage[]): void {
    this.#chain = chain;
  }

  /** Runs a request, once those before it on its connection are answered. */
  request(req: IncomingMessage, res: ServerResponse): void {
    if (!this.#admits(req)) return;
    // The parser loses what followed an upgrade that is not accepted: nothing may follow on this connection.
    if (req.headers.upgrade !== undefined) res.shouldKeepAlive = false;
    limitChunks(req, res, () => this.#parts.onClosed?.('chunks'));
    const exchange = new Exchange(req, res);
    this.#pipelined.enter(exchange, () => this.#run(exchange));
  }

  /** Runs a WebSocket upgrade; a refusal is written to the raw socket as an ordinary response. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!this.#admits(req)) return;
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.once('finish', () => socket.end());
    socket.on('error', () => socket.destroy());
    const exchange = new Exchange(req, res, { socket, head });
    this.#pipelined.enter(exchange, () => {
      res.assignSocket(req.socket);
      this.#run(exchange);
    });
  }

  /**
   * Answers bytes that are no HTTP: as a refusal of the request whose body they are, else with a response of its own,
   * since there is nothing to run the chain on. Complete requests before them are answered first, and nothing after
   * them. A client that has left is not answered.
   */
  malformed(error: ParserError, socket: Duplex): void {
    if (GONE.has(error.code ?? '') || !socket.writable) {
      socket.destroy();
      return;
    }
    const latest = this.#pipelined.latest(socket);
    if (!latest || (latest.req.complete && latest.res.closed))
      this.#answerUnparsed(error, socket, latest === undefined);
    else if (latest.req.complete || latest.isAnswered) this.#pipelined.endAfter(latest);
    else {
      latest.isBroken = true;
      // A request that still waits is refused when it begins.
      if (latest.hasBegun) refuse(latest, invalidRequest([NOT_HTTP]), this.#parts.log);
    }
  }

  /**
   * Closes the connection of a client that keeps sending requests without reading responses: the current ones end as if
   * the client had left, those that wait never begin.
   */
  #admits(req: IncomingMessage): boolean {
    if (this.#pipelined.admitsAnother(req.socket)) return true;
    if (!req.socket.destroyed) this.#parts.onClosed?.('pipeline');
    req.socket.destroy();
    // The parser continues to the end of the bytes that were read. Node would end each further request with an error,
    // which costs more than all else.
    req.destroy();
    return false;
  }

  #answerUnparsed(error: ParserError, socket: Duplex, isFirst: boolean): void {
    const { remoteAddress = '' } = socket as Socket;
    const unparsed = { ...readUnparsed(error, isFirst), remoteAddress };
    this.#parts.onUnparsed(unparsed, () => socket.end(unparsedResponse(unparsed)));
  }

  #run(exchange: Exchange): void {
    exchange.hasBegun = true;
    settleClientAddress(exchange, this.#parts.trusts);
    exchange.isUnrecordable = this.#parts.isAuditFull();
    this.#parts.cors(exchange);
    const { around, flags = {} } = this.#parts;
    exchange.pathFlags = flags[exchange.req.url?.split('?', 1)[0] ?? ''];
    if (around) around(exchange, () => this.#pass(exchange));
    else this.#pass(exchange);
  }

  #pass(exchange: Exchange): void {
    runSteps(this.#chain, exchange).catch((error: unknown) => {
      exchange.correlationId ||= uuidV7();
      exchange.audit.capture.install((aborted, kept) => this.#parts.onEnd(exchange, aborted, kept));
      refuse(exchange, error, this.#parts.log);
    });
  }
}
