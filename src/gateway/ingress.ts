import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Gateway } from './gateway.ts';

const MAX_REQUEST_MS = 3_600_000;
/** An overlong token is refused as every other that is none: by the chain, not by the parser. */
const MAX_HEADER_BYTES = 160 * 1024;

/** How long a connection may take for nothing, in milliseconds. */
export interface ConnectionTimes {
  /** From its first byte, or from its opening where none comes, until a head is complete. */
  headMs: number;
  /** From an answer to the next request. */
  idleMs: number;
  /** How often heads are looked at. */
  checkEveryMs: number;
}

// Load balancers keep connections for 60 seconds: closed first from here, one may carry a request that nobody reads.
const TIMES: ConnectionTimes = { headMs: 60_000, idleMs: 75_000, checkEveryMs: 5_000 };

/** The public listener, which has no other way in than the gateway. */
export function ingress(gateway: Gateway, { headMs, idleMs, checkEveryMs }: ConnectionTimes = TIMES): Server {
  // Every other upgrade is offered, not asked for: the request is answered as it is (RFC 9110 section 7.8).
  const options = {
    requireHostHeader: false,
    shouldUpgradeCallback: isWebSocketUpgrade,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Long uploads: whoever reads a body bounds how long it may take.
    requestTimeout: MAX_REQUEST_MS,
    headersTimeout: headMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: checkEveryMs,
  };
  const server = createServer(options, (req, res) => gateway.request(req, res));
  server.on('upgrade', (req, socket, head) => gateway.upgrade(req, socket, head));
  // No tunnel is registered: it is refused, and recorded, as any other request.
  server.on('connect', (req, socket, head) => gateway.upgrade(req, socket, head));
  // Leave to send is given where a body is read; any other expectation is met by the answer.
  server.on('checkContinue', (req, res) => server.emit('request', req, res));
  server.on('checkExpectation', (req, res) => server.emit('request', req, res));
  server.on('clientError', (error, socket) => gateway.malformed(error, socket));
  return server;
}

/** Whether a request asks for a WebSocket that can be opened (RFC 6455 section 4.2.1). */
function isWebSocketUpgrade({ method, headers, httpVersion }: IncomingMessage): boolean {
  const { upgrade, 'sec-websocket-key': key, 'sec-websocket-version': version } = headers;
  if (httpVersion !== '1.1') return false;
  return method === 'GET' && upgrade?.toLowerCase() === 'websocket' && version === '13' && isWebSocketKey(key);
}

function isWebSocketKey(key: string | undefined): boolean {
  return key !== undefined && /^[+/0-9A-Za-z]{22}==$/.test(key);
}
