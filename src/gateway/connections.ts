import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Metric } from 'prom-client';
import { callerAddress, plainAddress } from '../lib/ip-address.ts';
import { counterBy, gauge } from '../lib/meters.ts';
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
   * Calls `take` when the requests before this one are answered, at once if there are none. Never calls it if the
   * connection ends before.
   */
  enter(exchange: Exchange, take: () => void): void {
    const { socket } = exchange.req;
    const before = this.#latest.get(socket);
    this.#latest.set(socket, exchange);
    this.#count(socket, 1);
    exchange.res.once('close', () => this.#answered(exchange));
    if (!before || before === 'answered') {
      take();
      return;
    }
    // One that never begins has no response that closes.
    exchange.req.once('close', () => !exchange.hasBegun && exchange.held?.end());
    if (before === 'ending') return;
    const takeIfOpen = () => {
      if (!socket.destroyed && !endsConnection(before.res)) take();
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

const REASONS = ['all', 'peer', 'pipeline', 'chunks'] as const;

/** Metrics of the connections of the public listener. */
export class ConnectionMetrics {
  readonly #refused = counterBy('reason', REASONS, {
    name: 'portcullis_connections_refused_total',
    help: 'Connections closed by the gateway, by reason: connection limit reached (all), half of the limit reached by one peer (peer), too many pipelined requests (pipeline), tiny chunks (chunks).',
  });
  #open = 0;
  readonly metrics: readonly Metric[] = [
    gauge('portcullis_connections', 'Open connections to the public listener.', () => this.#open),
    this.#refused,
  ];

  /** Counts an accepted connection; the caller must call `closed` once for it. */
  opened(): void {
    this.#open += 1;
  }

  closed(): void {
    this.#open -= 1;
  }

  refused(reason: (typeof REASONS)[number]): void {
    this.#refused.inc({ reason });
  }
}

interface ConnectionLimit {
  /** The most connections that may be open. */
  max: number;
  trusts: TrustedPeers;
  metrics: ConnectionMetrics;
}

/**
 * Closes connections beyond `max`, and beyond half of that for one peer that is not a trusted proxy, without reading
 * from them.
 */
export function limitConnections(server: Server, { max, trusts, metrics }: ConnectionLimit): void {
  const maxOfPeer = Math.ceil(max / 2);
  const open = new Map<string, number>();
  server.maxConnections = max;
  server.on('drop', () => metrics.refused('all'));
  server.on('connection', (socket) => {
    const address = plainAddress(socket.remoteAddress ?? '');
    const peer = callerAddress(address);
    const before = open.get(peer) ?? 0;
    if (before >= maxOfPeer && !trusts(address, 0)) {
      metrics.refused('peer');
      socket.destroy();
      return;
    }
    open.set(peer, before + 1);
    metrics.opened();
    socket.once('close', () => {
      metrics.closed();
      const left = (open.get(peer) ?? 0) - 1;
      if (left > 0) open.set(peer, left);
      else open.delete(peer);
    });
  });
}
