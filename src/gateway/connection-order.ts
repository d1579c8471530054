import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Exchange } from './exchange.ts';

/**
 * The requests of each connection, one after another (RFC 9112 section 9.3.2): the next one begins when the one before is
 * answered, and none behind an answer that ends the connection (section 9.6).
 */
export class ConnectionOrder {
  readonly #latest = new WeakMap<Duplex, Exchange>();
  /** Connections that end with the answer under way. */
  readonly #ending = new WeakSet<Duplex>();

  /** The request that came last on a connection. */
  latest(socket: Duplex): Exchange | undefined {
    return this.#latest.get(socket);
  }

  /** Calls `take` when the turn of a request comes, at once where nothing is before it; never, where that cannot be. */
  enter(exchange: Exchange, take: () => void): void {
    const { socket } = exchange.req;
    const before = this.#latest.get(socket);
    this.#latest.set(socket, exchange);
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
}

function endsConnection(res: ServerResponse): boolean {
  return !res.shouldKeepAlive || /close/i.test(String(res.getHeader('connection') ?? ''));
}
