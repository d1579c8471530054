import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy that publishes an instance below a path, as documented: it removes the path, and passes well-known ones on. */
export interface StrippingProxy extends AsyncDisposable {
  origin: string;
  /** The paths that it was asked for. */
  asked: string[];
  /** Passes requests on to an instance from now on. */
  lead(url: string): void;
}

export async function startStrippingProxy(prefix: string): Promise<StrippingProxy> {
  const asked: string[] = [];
  let target = '';
  const server = createServer((req, res) => {
    const { url = '', method, headers } = req;
    asked.push(url);
    if (!url.startsWith(`${prefix}/`) && !url.startsWith('/.well-known/')) {
      res.writeHead(421).end();
      return;
    }
    const path = url.startsWith(prefix) ? url.slice(prefix.length) : url;
    const passed = request(`${target}${path}`, { method, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 0, answer.rawHeaders);
      answer.pipe(res);
    });
    passed.on('error', () => res.destroy());
    req.pipe(passed);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    lead: (url) => {
      target = url;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
