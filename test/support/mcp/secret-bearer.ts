import { createServer, request } from 'node:http';
import { listen } from '../../../src/app/listen.ts';

/** A proxy that brings the secret for clients that cannot send one; all else passes as it is. */
export interface SecretBearer extends AsyncDisposable {
  url: string;
}

/** Starts one in front of an address. */
export async function secretBearer(url: string, secret: string): Promise<SecretBearer> {
  const server = createServer((req, res) => {
    const headers = { ...req.headers, authorization: `Bearer ${secret}` };
    const asked = request(new URL(req.url ?? '/', url), { method: req.method ?? 'GET', headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    req.pipe(asked);
  });
  const port = await listen(server, { host: '127.0.0.1', port: 0, variable: 'PORT' });
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}
