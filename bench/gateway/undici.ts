import { createServer } from 'node:http';
import { Pool } from 'undici';
import { judge } from './judge.ts';
import { gatewayOptions } from './peer.ts';

/** Run as a process of its own: node:http in front, undici's `stream` behind, the token and the limit judged; no audit. */
const { port, upstream, signingSecret } = gatewayOptions();
const verdict = judge(signingSecret);
const pool = new Pool(upstream, { connections: 128 });

createServer((req, res) => {
  if (req.url === '/health') return void res.end();
  const status = verdict(req);
  if (status !== 200) return void res.writeHead(status).end();
  const { host: _, connection: __, ...headers } = req.headers;
  const forwarded = { ...headers, 'x-forwarded-for': req.socket.remoteAddress ?? '' };
  const body = req.method === 'GET' ? null : req;
  pool
    .stream({ method: req.method ?? 'GET', path: req.url ?? '/', headers: forwarded, body }, (answer) => {
      const { connection: ___, 'keep-alive': ____, ...fields } = answer.headers;
      return res.writeHead(answer.statusCode, fields);
    })
    .catch(() => res.writeHead(502).end());
}).listen(port, '127.0.0.1');
