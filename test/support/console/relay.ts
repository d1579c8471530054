import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to an instance that a test can cut. */
export interface Relay extends AsyncDisposable {
  url: string;
  /** Ends all connections, and refuses others until `mend`. */
  cut(): void;
  mend(): void;
  /** Leads further connections to another instance. */
  lead(to: string): void;
}

/** Relays connections to an instance. */
export async function startRelay(first: string): Promise<Relay> {
  let to = new URL(first);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = connect({ host: to.hostname, port: Number(to.port) });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => {
      isCut = true;
      drop();
    },
    mend: () => {
      isCut = false;
    },
    lead: (next) => {
      to = new URL(next);
    },
    [Symbol.asyncDispose]: async () => {
      drop();
      server.close();
      await once(server, 'close');
    },
  };
}
