import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Metric } from 'prom-client';
import { callerAddress, plainAddress } from '../lib/ip-address.ts';
import { counterBy, gauge } from '../lib/meters.ts';
import { every } from '../lib/shared-ticks.ts';
import { type HeldMemory, type MemoryAccounts, OTHER_ACCOUNTS } from '../platform/held-memory.ts';
import { announcesBody } from './exchange/capture.ts';
import type { Exchange } from './exchange/exchange.ts';
import type { TrustedPeers } from './exchange/request-head.ts';

/** The most unanswered requests of one connection. */
const MAX_PENDING = 64;

/**
 * The latest request of a connection. Once it is complete and answered, only whether the connection ends with it, so
 * that an idle connection does not keep a long response in memory.
 */
type LatestRequest = Exchange | 'answered' | 'ending';

/**
 * Serialises the requests of each connection (RFC 9112 section 9.3.2): the next one begins when the response to the
 * previous one is complete, and none after a response that ends the connection (section 9.6).
 */
export class PipelinedRequests {
  readonly #latest = new WeakMap<Duplex, LatestRequest>();
  readonly #pending = new WeakMap<Duplex, number>();
  /** Connections that are closed after the current response. */
  readonly #ending = new WeakSet<Duplex>();

  /** Returns the latest request of a connection; undefined when it had none. */
  latest(socket: Duplex): LatestRequest | undefined {
    return this.#latest.get(socket);
  }

  /**
   * Checks whether a connection may bring another request. A closed one may not, even if the parser still finds one.
   */
  admitsAnother(socket: Duplex): boolean {
    return !socket.destroyed && (this.#pending.get(socket) ?? 0) < MAX_PENDING;
  }

  /**
   * Calls `start` when the requests before this one are answered, at once if there are none. Never calls it if the
   * connection ends before.
   */
  enter(exchange: Exchange, start: () => void): void {
    const { socket } = exchange.req;
    const before = this.#latest.get(socket);
    this.#latest.set(socket, exchange);
    this.#count(socket, 1);
    exchange.res.once('close', () => this.#answered(exchange));
    if (!before || before === 'answered') {
      start();
      return;
    }
    // One that never begins has no response that closes.
    exchange.req.once('close', () => !exchange.hasBegun && exchange.held?.end());
    if (before === 'ending') return;
    const takeIfOpen = () => {
      if (!socket.destroyed && !endsConnection(before.res)) start();
    };
    if (before.res.closed) takeIfOpen();
    else {
      before.res.once('close', takeIfOpen);
      // Node no longer emits `drain` on the response of a connection that is being upgraded.
      if (exchange.upgrade) socket.on('drain', () => before.res.writableNeedDrain && before.res.emit('drain'));
    }
  }

  /** Closes the connection after the current response. */
  endAfter({ req: { socket }, res }: Exchange): void {
    if (this.#ending.has(socket)) return;
    this.#ending.add(socket);
    if (res.closed) {
      socket.end();
      return;
    }
    if (!res.headersSent) res.setHeader('Connection', 'close');
    res.once('close', () => socket.end());
  }

  #answered(exchange: Exchange): void {
    const { req, res } = exchange;
    this.#count(req.socket, -1);
    if (!req.complete || this.#latest.get(req.socket) !== exchange) return;
    this.#latest.set(req.socket, endsConnection(res) ? 'ending' : 'answered');
  }

  #count(socket: Duplex, change: number): void {
    this.#pending.set(socket, (this.#pending.get(socket) ?? 0) + change);
  }
}

function endsConnection(res: ServerResponse): boolean {
  return !res.shouldKeepAlive || /close/i.test(String(res.getHeader('connection') ?? ''));
}

/** How often the heads that are arriving are charged, in ms. */
const HEADS_MS = 1_000;

/** So much more than it takes a request may have in spaces before values and in the framing of its body. */
const SPACE_BYTES = 4 * 1024;

/** Returns the length of a request; infinite if only the end of its body tells. */
function lengthOf({ method = '', url = '', rawHeaders, headers }: IncomingMessage): number {
  if (headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY;
  // `GET / HTTP/1.1` and the empty line; of each field a name, a value, and what is between and behind them.
  const head = rawHeaders.reduce((sum, text) => sum + text.length + 2, method.length + url.length + 14);
  return head + Number(headers['content-length'] ?? 0);
}

/** A connection whose next head may be arriving. */
interface Arrival {
  /** The number of bytes of the connection that precede the head; infinite while the rest may be a body. */
  from: number;
  /** The number of its requests so far; the connection would keep the request itself. */
  latest: number;
  held?: HeldMemory | undefined;
}

/**
 * Charges heads that are still arriving to callers who are not known yet, by address: Node tells of a head only once it
 * is complete. A connection whose head has to make room is closed.
 */
export class ArrivingHeads {
  readonly #memory: MemoryAccounts;
  readonly #open = new Map<Socket, Arrival>();

  constructor(server: Server, memory: MemoryAccounts) {
    this.#memory = memory;
    server.on('connection', (socket) => {
      this.#open.set(socket, { from: 0, latest: 0 });
      socket.once('close', () => this.#close(socket));
    });
    server.prependListener('request', (req) => this.#complete(req));
    // No other head comes after an upgrade.
    for (const event of ['upgrade', 'connect']) server.prependListener(event, ({ socket }) => this.#close(socket));
    server.once(
      'close',
      every(HEADS_MS, () => this.charge()),
    );
  }

  /** Charges what has arrived of each head. */
  charge(): void {
    for (const [socket, arrival] of this.#open) {
      const bytes = Math.max(0, socket.bytesRead - arrival.from);
      if (bytes === 0 && !arrival.held) continue;
      arrival.held ??= this.#openFor(socket);
      arrival.held.charge(bytes - arrival.held.bytes);
    }
  }

  #complete(req: IncomingMessage): void {
    const { socket } = req;
    const arrival = this.#open.get(socket);
    if (!arrival) return;
    arrival.latest += 1;
    const { latest } = arrival;
    const next = arrival.from + lengthOf(req);
    const begin = () => {
      // The end of a body may be noticed after the next head.
      if (arrival.latest !== latest) return;
      this.#begin(socket, socket.bytesRead - next > SPACE_BYTES ? next : socket.bytesRead);
    };
    if (!announcesBody(req)) {
      begin();
      return;
    }
    this.#begin(socket, Number.POSITIVE_INFINITY);
    req.once('end', begin);
  }

  #openFor(socket: Socket): HeldMemory {
    const held = this.#memory.open(
      OTHER_ACCOUNTS.unidentified,
      callerAddress(plainAddress(socket.remoteAddress ?? '')),
    );
    const giveUp = () => void socket.destroy();
    held.giveUp = giveUp;
    return held;
  }

  #begin(socket: Socket, from: number): void {
    const arrival = this.#open.get(socket);
    if (!arrival) return;
    arrival.held?.end();
    arrival.held = undefined;
    arrival.from = from;
  }

  #close(socket: Socket): void {
    this.#begin(socket, 0);
    this.#open.delete(socket);
  }
}

const REASONS = ['all', 'peer', 'pipeline', 'chunks'] as const;

/** Metrics of the connections of the public listener. */
export class ConnectionMetrics {
  readonly #refusals = counterBy('reason', REASONS, {
    name: 'portcullis_connections_refused_total',
    help: 'Connections closed by the gateway, by reason: connection limit reached (all), half of the limit reached by one peer (peer), too many pipelined requests (pipeline), tiny chunks (chunks).',
  });
  #open = 0;
  readonly metrics: readonly Metric[] = [
    gauge('portcullis_connections', 'Open connections to the public listener.', () => this.#open),
    this.#refusals,
  ];

  /** Counts an accepted connection; the caller must call `closed` once for it. */
  opened(): void {
    this.#open += 1;
  }

  closed(): void {
    this.#open -= 1;
  }

  countRefusal(reason: (typeof REASONS)[number]): void {
    this.#refusals.inc({ reason });
  }
}

/**
 * Closes connections beyond `max`, and beyond half of that for one peer that is not a trusted proxy, without reading
 * from them.
 */
export function limitConnections(
  server: Server,
  {
    max,
    trusts,
    metrics,
  }: {
    /** The most connections that may be open. */
    max: number;
    trusts: TrustedPeers;
    metrics: ConnectionMetrics;
  },
): void {
  const maxOfPeer = Math.ceil(max / 2);
  const open = new Map<string, number>();
  server.maxConnections = max;
  server.on('drop', () => metrics.countRefusal('all'));
  server.on('connection', (socket) => {
    const address = plainAddress(socket.remoteAddress ?? '');
    const peer = callerAddress(address);
    const before = open.get(peer) ?? 0;
    if (before >= maxOfPeer && !trusts(address, 0)) {
      metrics.countRefusal('peer');
      socket.destroy();
      return;
    }
    open.set(peer, before + 1);
    metrics.opened();
    socket.once('close', () => {
      metrics.closed();
      const openCount = (open.get(peer) ?? 0) - 1;
      if (openCount > 0) open.set(peer, openCount);
      else open.delete(peer);
    });
  });
}
