import { Agent, createServer, request } from 'node:http';
import { shortestRecords } from '../lib/shortest-record.ts';
import { judge } from './judge.ts';
import { gatewayOptions } from './peer.ts';

/**
 * Run as a process of its own: node:http in front, `http.Agent` behind, the token and the limit judged; no audit, or a
 * record of each request.
 */
const { port, upstream, signingSecret, records } = gatewayOptions();
const keep = records && shortestRecords(records);
const verdict = judge(signingSecret);
const agent = new Agent({ keepAlive: true, maxSockets: 128 });
const { hostname, port: upstreamPort } = new URL(upstream);

createServer((req, res) => {
  if (req.url === '/health') return void res.end();
  const startedTick = performance.now();
  const status = verdict(req);
  if (status !== 200) return void res.writeHead(status).end();
  const { host: _, connection: __, ...headers } = req.headers;
  const forwarded = { ...headers, 'x-forwarded-for': req.socket.remoteAddress ?? '' };
  const options = { agent, hostname, port: upstreamPort, method: req.method, path: req.url, headers: forwarded };
  const forward = request(options, (answer) => {
    const { connection: ___, 'keep-alive': ____, ...fields } = answer.headers;
    res.writeHead(answer.statusCode ?? 502, fields);
    if (!keep) return void answer.pipe(res);
    const chunks: Buffer[] = [];
    answer.on('data', (chunk) => chunks.push(chunk));
    answer.on('end', () => {
      const body = Buffer.concat(chunks);
      keep({ req, startedTick, requestBody: '', responseBody: body.toString() }, () => res.end(body));
    });
  });
  forward.on('error', () => res.writeHead(502).end());
  req.pipe(forward);
}).listen(port, '127.0.0.1');
