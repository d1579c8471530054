import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Exchange } from './exchange.ts';

/** How many requests of a connection may wait for their answers: who sends more has not read what it asked for. */
const MAX_UNANSWERED = 64;

/**
 * The requests of each connection, one after another (RFC 9112 section 9.3.2): the next one begins when the one before is
 * answered, and none behind an answer that ends the connection (section 9.6).
 */
export class ConnectionOrder {
  readonly #latest = new WeakMap<Duplex, Exchange>();
  readonly #unanswered = new WeakMap<Duplex, number>();
  /** Connections that end with the answer under way. */
  readonly #ending = new WeakSet<Duplex>();

  /** The request that came last on a connection. */
  latest(socket: Duplex): Exchange | undefined {
    return this.#latest.get(socket);
  }

  /** Whether a connection has room for one request more; none that was closed has, whatever the parser still finds. */
  hasRoom(socket: Duplex): boolean {
    return !socket.destroyed && (this.#unanswered.get(socket) ?? 0) < MAX_UNANSWERED;
  }

  /** Calls `take` when the turn of a request comes, at once where nothing is before it; never, where that cannot be. */
  enter(exchange: Exchange, take: () => void): void {
    const { socket } = exchange.req;
    const before = this.#latest.get(socket);
    this.#latest.set(socket, exchange);
    this.#count(socket, 1);
    exchange.res.once('close', () => this.#count(socket, -1));
    if (!before) {
      take();
      return;
    }
    const takeIfOpen = () => {
      if (!socket.destroyed && !endsConnection(before.res)) take();
    };
    if (before.res.closed) takeIfOpen();
    else {
      before.res.once('close', takeIfOpen);
      // Node no longer watches a connection that is to be another protocol's.
      if (exchange.upgrade) socket.on('drain', () => before.res.writableNeedDrain && before.res.emit('drain'));
    }
  }

  /** Lets an answer be the last of its connection. */
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

  #count(socket: Duplex, change: number): void {
    this.#unanswered.set(socket, (this.#unanswered.get(socket) ?? 0) + change);
  }
}

function endsConnection(res: ServerResponse): boolean {
  return !res.shouldKeepAlive || /close/i.test(String(res.getHeader('connection') ?? ''));
}
