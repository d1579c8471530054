import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { callerAddress } from '../lib/ip-address.ts';
import type { Log } from '../lib/log.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { invalidRequest, Refusal } from '../platform/errors.ts';
import { type MemoryAccounts, OTHER_ACCOUNTS, REQUEST_BYTES } from '../platform/held-memory.ts';
import type { Stage } from './chain.ts';
import { PipelinedRequests } from './connections.ts';
import { Exchange, exchangeOf } from './exchange/exchange.ts';
import { createServer, ServerResponse } from './exchange/node-http.ts';
import { type Cors, settleClientAddress, type TrustedPeers } from './exchange/request-head.ts';
import { refuse } from './exchange/responses.ts';
import {
  LIMIT_ISSUES,
  MAX_HEADER_BYTES,
  MAX_HEADER_FIELDS,
  NOT_HTTP,
  type ParserError,
  readUnparsed,
  type Unparsed,
  unparsedResponse,
} from './exchange/unparsed.ts';

const MAX_REQUEST_MS = 3_600_000;

/** How long connections may be idle; all times in milliseconds. */
export interface ConnectionTimes {
  /** The time within which a head must be complete, from its first byte or the opening of the connection. */
  headMs: number;
  /** The longest time from a response to the next request. */
  idleMs: number;
  /** The interval at which `headMs` is checked. */
  checkEveryMs: number;
}

// The idle time is longer than the 60 seconds for which load balancers keep connections: if the gateway closed first, a
// request could be lost.
const TIMES: ConnectionTimes = { headMs: 60_000, idleMs: 75_000, checkEveryMs: 5_000 };

/** Creates the HTTP server of the public listener, which passes every request to the gateway. */
export function ingress(gateway: Gateway, { headMs, idleMs, checkEveryMs }: ConnectionTimes = TIMES): Server {
  // Other upgrades than WebSocket are ignored, as RFC 9110 section 7.8 allows: the request is answered normally.
  const options = {
    requireHostHeader: false,
    shouldUpgradeCallback: isWebSocketUpgrade,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Uploads take long; the code that reads a body sets a shorter limit.
    requestTimeout: MAX_REQUEST_MS,
    headersTimeout: headMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: checkEveryMs,
  };
  const server = createServer(options, (req, res) => gateway.request(req, res));
  server.maxHeadersCount = MAX_HEADER_FIELDS;
  server.on('upgrade', (req, socket, head) => gateway.upgrade(req, socket, head));
  // CONNECT is refused and recorded like any other request.
  server.on('connect', (req, socket, head) => gateway.upgrade(req, socket, head));
  // 100 Continue is sent when a body is read; other expectations are ignored.
  server.on('checkContinue', (req, res) => server.emit('request', req, res));
  server.on('checkExpectation', (req, res) => server.emit('request', req, res));
  server.on('clientError', (error, socket) => gateway.malformed(error, socket));
  return server;
}

/** Checks whether a request is a valid WebSocket upgrade (RFC 6455 section 4.2.1). */
function isWebSocketUpgrade({ method, headers, httpVersion }: IncomingMessage): boolean {
  const { upgrade, 'sec-websocket-key': key, 'sec-websocket-version': version } = headers;
  return (
    httpVersion === '1.1' &&
    method === 'GET' &&
    upgrade?.toLowerCase() === 'websocket' &&
    version === '13' &&
    /^[+/0-9A-Za-z]{22}==$/.test(key ?? '')
  );
}

/** Node's error codes for a connection whose client has left. */
const GONE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE']);

/** The entry point of the public listener: runs every request and upgrade through the chain, and answers refusals. */
export class Gateway {
  readonly #deps;
  #chain: readonly Stage[];
  readonly #pipelined = new PipelinedRequests();

  constructor(deps: {
    /** The stages that every request passes, in order, until `use` replaces them. */
    chain: readonly Stage[];
    trusts: TrustedPeers;
    /** The accounts that requests are charged to. */
    memory: MemoryAccounts;
    cors: Cors;
    /** Checks whether no more audit records can be stored; then only endpoints such as health are served. */
    isAuditFull(): boolean;
    onEnd(exchange: Exchange, aborted: boolean, onPersisted: () => void): void;
    /** Runs a request within a context, such as its span. */
    withContext(exchange: Exchange, run: () => void): void;
    /**
     * Called when a connection was closed because too many requests wait on it, or because its body comes in tiny chunks.
     */
    onClosed(reason: 'pipeline' | 'chunks'): void;
    /** Called for bytes that are not valid HTTP. The response is sent when `onPersisted` is called. */
    onUnparsed(unparsed: Unparsed, onPersisted: () => void): void;
    log: Log;
  }) {
    this.#deps = deps;
    this.#chain = deps.chain;
  }

  /** Replaces the chain. Requests that have begun finish with the old one. */
  use(chain: readonly Stage[]): void {
    this.#chain = chain;
  }

  /** Runs a request once those before it on its connection are answered. */
  request(req: IncomingMessage, res: ServerResponse): void {
    if (!this.#admits(req)) return;
    // The parser loses the bytes after an upgrade that is not accepted, so this must be the connection's last request.
    if (req.headers.upgrade !== undefined) res.shouldKeepAlive = false;
    const exchange = new Exchange(req, res);
    exchange.audit.capture.limitChunks(() => this.#deps.onClosed('chunks'));
    this.#hold(exchange);
    this.#pipelined.enter(exchange, () => this.#run(exchange));
  }

  /** Runs a WebSocket upgrade. A refusal is written to the raw socket as an ordinary response. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!this.#admits(req)) return;
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.once('finish', () => socket.end());
    socket.on('error', () => socket.destroy());
    const exchange = new Exchange(req, res, { socket, head });
    this.#hold(exchange);
    this.#pipelined.enter(exchange, () => {
      res.assignSocket(req.socket);
      this.#run(exchange);
    });
  }

  /**
   * Answers bytes that are not valid HTTP: if they belong to the body of a request, by refusing that request, otherwise
   * with a response outside the chain. Complete requests before them are answered first; what follows them is ignored.
   * If the client has left, closes the connection instead.
   */
  malformed(error: ParserError, socket: Duplex): void {
    if (GONE.has(error.code ?? '') || !socket.writable) {
      socket.destroy();
      return;
    }
    const latest = this.#pipelined.latest(socket);
    if (typeof latest !== 'object' || (latest.req.complete && latest.res.closed))
      this.#answerUnparsed(error, socket, latest === undefined);
    else if (latest.req.complete || latest.isAnswered) this.#pipelined.endAfter(latest);
    else {
      latest.isBroken = true;
      // A request that is still waiting is refused when it begins.
      if (latest.hasBegun) refuse(latest, invalidRequest([LIMIT_ISSUES[error.code ?? ''] ?? NOT_HTTP]), this.#deps.log);
    }
  }

  /**
   * Refuses a request whose body does not come while the process stops: 503, or 500 where the statuses are closed. Does
   * nothing with one that has its response.
   */
  giveUp(req: IncomingMessage): void {
    const exchange = exchangeOf(req);
    const details = { retryAfterSeconds: 1, reason: 'the body stopped arriving while the process stops' };
    if (!exchange.isAnswered) this.#giveUp(exchange, new Refusal('service_unavailable', details));
  }

  /** Refuses a request, even while a handler works on it. One that is still waiting is refused when it begins. */
  #giveUp(exchange: Exchange, refusal: Refusal): void {
    if (!exchange.hasBegun) return;
    exchange.isBroken = true;
    refuse(exchange, refusal, this.#deps.log);
  }

  /** Charges a request to the account of callers that are not known yet, until it ends. */
  #hold(exchange: Exchange): void {
    const { req, res, upgrade } = exchange;
    settleClientAddress(exchange, this.#deps.trusts);
    const held = this.#deps.memory.open(OTHER_ACCOUNTS.unidentified, callerAddress(exchange.realIp));
    const giveUp = (refusal: Refusal) => {
      // The rest of a response that its client does not read is in memory too.
      if (exchange.isAnswered) req.socket.destroy();
      else this.#giveUp(exchange, refusal);
    };
    held.giveUp = giveUp;
    exchange.held = held;
    (upgrade?.socket ?? res).once('close', () => {
      if (!res.writableFinished) held.leave();
      held.end();
    });
    let characters = 0;
    for (const text of req.rawHeaders) characters += text.length;
    held.charge(REQUEST_BYTES + 2 * characters);
  }

  /**
   * Checks whether a connection may bring this request, and closes it otherwise. That stops clients that keep sending
   * requests without reading responses: current requests end as if the client had left, waiting ones never begin.
   */
  #admits(req: IncomingMessage): boolean {
    if (this.#pipelined.admitsAnother(req.socket)) return true;
    if (!req.socket.destroyed) this.#deps.onClosed('pipeline');
    req.socket.destroy();
    // The parser continues to the end of the bytes that were read. Node would end each further request with an error,
    // at high cost.
    req.destroy();
    return false;
  }

  #answerUnparsed(error: ParserError, socket: Duplex, isFirst: boolean): void {
    const { remoteAddress = '' } = socket as Socket;
    const unparsed = { ...readUnparsed(error, isFirst), remoteAddress, isUnrecordable: this.#deps.isAuditFull() };
    this.#deps.onUnparsed(unparsed, () => socket.end(unparsedResponse(unparsed, this.#deps.cors)));
  }

  #run(exchange: Exchange): void {
    exchange.hasBegun = true;
    exchange.isUnrecordable = this.#deps.isAuditFull();
    const fields = this.#deps.cors(exchange.req.headers.origin);
    for (const name in fields) exchange.res.setHeader(name, fields[name] ?? '');
    this.#deps.withContext(exchange, () => this.#pass(exchange));
  }

  #pass(exchange: Exchange): void {
    runStages(this.#chain, exchange).catch((error: unknown) => {
      exchange.correlationId ||= uuidV7();
      exchange.audit.capture.install((aborted, onPersisted) => this.#deps.onEnd(exchange, aborted, onPersisted));
      refuse(exchange, error, this.#deps.log);
    });
  }
}

/**
 * Runs the stages in order: at once as far as none waits, so that a request has its correlation id and its record when the
 * parser finds invalid bytes behind its head. A refusal is sent no sooner than that; a request that was refused meanwhile
 * goes no further.
 */
async function runStages(chain: readonly Stage[], exchange: Exchange): Promise<void> {
  for (const stage of chain) {
    const pending = stage(exchange);
    if (!pending) continue;
    await pending;
    if (exchange.isAnswered) return;
  }
}
