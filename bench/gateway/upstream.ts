import { createServer } from 'node:http';
import { gatewayOptions } from './peer.ts';

/** What the accounts of ten customers come to. */
const BODY = JSON.stringify({
  data: Array.from({ length: 10 }, (_, index) => ({
    id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    name: `Account ${index}`,
    type: 1,
    status: 1,
    created_at: '2026-11-01T00:00:00Z',
  })),
});

/** Longer than a gateway rests between two rounds: `http.Agent` may send a request just as its connection is closed. */
const KEEP_ALIVE_MS = 300_000;

/** Run as a process of its own: the service behind each of the gateways. */
createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (_req, res) => {
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(BODY) }).end(BODY);
}).listen(gatewayOptions().port, '127.0.0.1');
