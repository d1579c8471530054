import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import express from 'express';

/** What answers: Express as it comes, Express without its ETag and `X-Powered-By`, or node:http alone. */
export type Frame = 'express' | 'plain-express' | 'http';

/** What a bare server is told. */
export interface BareOptions {
  port: number;
  frame: Frame;
  version: string;
}

/** The product's own answer, made anew for each request as the product does. */
function report(version: string): object {
  const uptime = Math.floor(performance.now() / 1000);
  return { status: 'ok', version, uptime, checks: { database: 'ok', cache: 'ok', bus: 'ok' } };
}

/** Run as a process of its own: GET /health and nothing else. */
function serve({ port, frame, version }: BareOptions): void {
  process.once('SIGTERM', () => process.exit());
  if (frame === 'http') {
    const server = createServer((_req, res) => {
      const text = JSON.stringify(report(version));
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
    });
    server.listen(port, '127.0.0.1');
    return;
  }
  const app = express();
  if (frame === 'plain-express') app.disable('etag').disable('x-powered-by');
  app.get('/health', (_req, res) => {
    res.json(report(version));
  });
  app.listen(port, '127.0.0.1');
}

const [, , path] = process.argv;
if (path === undefined) throw new Error('usage: bare FILE');
serve(JSON.parse(readFileSync(path, 'utf8')));
