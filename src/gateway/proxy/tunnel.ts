import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Exchange } from '../exchange/exchange.ts';
import { eachResponseField } from './headers.ts';

const KEEP_ALIVE_MS = 60_000;

/** A WebSocket between a client and an upstream, through the gateway. */
interface Tunnel {
  /** Closes both connections. */
  stop(): void;
}

/**
 * Accepts a client's WebSocket upgrade (RFC 6455 section 4.2.2), and passes on the bytes of either side at the pace of
 * the other. Calls `onEnd` once both connections are closed.
 */
export function openTunnel(
  exchange: Exchange,
  headers: IncomingHttpHeaders,
  upstream: Duplex,
  onEnd: () => void,
): Tunnel {
  const { req, res, upgrade, correlationId } = exchange;
  if (!upgrade) throw new Error('the request is not an upgrade');
  const client = upgrade.socket;
  const lines = [`X-Correlation-ID: ${correlationId}`];
  eachResponseField(headers, (name, value) => {
    if (name === 'content-length') return;
    for (const item of Array.isArray(value) ? value : [value]) lines.push(`${name}: ${item}`);
  });
  res.statusCode = 101;
  res.detachSocket(req.socket);
  const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${lines.join('\r\n')}`;
  client.write(`${head}\r\n\r\n`, 'latin1');
  for (const socket of [req.socket, upstream]) keepAlive(socket);
  if (upgrade.head.length > 0) upstream.write(upgrade.head);
  client.pipe(upstream);
  upstream.pipe(client);

  let open = 2;
  const close = () => {
    client.destroy();
    upstream.destroy();
    open -= 1;
    if (open > 0) return;
    exchange.audit.capture.finish();
    onEnd();
  };
  for (const side of [client, upstream]) {
    side.on('error', () => side.destroy());
    side.once('close', close);
  }
  return { stop: () => void client.destroy() };
}

/** Turns on TCP keep-alive, so that the kernel detects a peer that has vanished. */
function keepAlive(socket: Duplex): void {
  const isSocket = (duplex: Duplex): duplex is Socket => 'setKeepAlive' in duplex;
  if (!isSocket(socket)) return;
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  socket.setNoDelay(true);
  socket.setTimeout(0);
}
