import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a server that can be cut and mended. */
export interface Severable extends AsyncDisposable {
  url: string;
  /** Breaks what is open, and refuses what is new. */
  cut(): void;
  mend(): void;
}

/** Puts such a way before the server of a URL. */
export async function severable(target: string): Promise<Severable> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    if (isCut) return void socket.resetAndDestroy();
    const beyond = connect({ host: hostname, port: Number(port) });
    beyond.on('error', () => socket.destroy());
    for (const end of [socket, beyond]) {
      open.add(end);
      end.once('close', () => {
        open.delete(end);
        socket.destroy();
        beyond.destroy();
      });
    }
    socket.pipe(beyond).pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cut = () => {
    isCut = true;
    for (const socket of open) socket.destroy();
  };
  return {
    url: url.href,
    cut,
    mend: () => {
      isCut = false;
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
