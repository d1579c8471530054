import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Log } from '../lib/log.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { refuse } from '../rest/refuse.ts';
import { enter, type TrustedPeers } from './door.ts';
import { Exchange } from './exchange.ts';
import { runStages, type Stage } from './stage.ts';

interface GatewayParts {
  chain: readonly Stage[];
  trusts: TrustedPeers;
  cors(exchange: Exchange): void;
  /** Whether no audit record can be kept: health apart, nothing is answered then. */
  isAuditFull(): boolean;
  onEnd(exchange: Exchange, aborted: boolean): void;
  log: Log;
}

/** The single ingress: every request and every upgrade passes the chain, and every refusal is rendered here. */
export class Gateway {
  readonly #parts: GatewayParts;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
  }

  /** Takes a request. */
  request(req: IncomingMessage, res: ServerResponse): void {
    this.#run(new Exchange(req, res));
  }

  /** Takes a WebSocket upgrade; a refusal is answered on the raw socket as an ordinary response. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(req.socket);
    res.once('finish', () => socket.end());
    socket.on('error', () => socket.destroy());
    this.#run(new Exchange(req, res, { socket, head }));
  }

  #run(exchange: Exchange): void {
    enter(exchange, this.#parts.trusts);
    exchange.isUnrecordable = this.#parts.isAuditFull();
    this.#parts.cors(exchange);
    runStages(this.#parts.chain, exchange).catch((error: unknown) => {
      exchange.correlationId ||= uuidV7();
      exchange.capture.install((aborted) => this.#parts.onEnd(exchange, aborted));
      refuse(exchange, error, this.#parts.log);
    });
  }
}
