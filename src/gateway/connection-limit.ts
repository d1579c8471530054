import type { Server } from 'node:http';
import { Counter, Gauge, type Metric } from 'prom-client';
import { holderOf, plainAddress } from '../lib/ip-address.ts';
import type { TrustedPeers } from './door.ts';

const REASONS = ['all', 'peer', 'pipeline', 'chunks'] as const;

/** What an operator sees of the connections of the public listener. */
export class ConnectionMetrics {
  readonly metrics: readonly Metric[];
  readonly #refused = new Counter<'reason'>({
    name: 'portcullis_connections_refused_total',
    help: 'Connections that were closed: as many as may be are open (all), half of them by one peer (peer), too many requests wait on it (pipeline), or a body comes in chunks of hardly any bytes (chunks).',
    labelNames: ['reason'],
    registers: [],
  });
  #open = 0;

  constructor() {
    for (const reason of REASONS) this.#refused.inc({ reason }, 0);
    const openNow = () => this.#open;
    const open = new Gauge({
      name: 'portcullis_connections',
      help: 'Connections to the public listener that are open.',
      registers: [],
      collect() {
        this.set(openNow());
      },
    });
    this.metrics = [open, this.#refused];
  }

  /** A connection was taken; `closed` is called once for it. */
  opened(): void {
    this.#open += 1;
  }

  closed(): void {
    this.#open -= 1;
  }

  refused(reason: (typeof REASONS)[number]): void {
    this.#refused.inc({ reason });
  }
}

interface ConnectionLimit {
  /** How many there may be at once. */
  max: number;
  trusts: TrustedPeers;
  metrics: ConnectionMetrics;
}

/** Closes connections beyond a number, and beyond half of it from one peer that is no trusted proxy, unheard. */
export function limitConnections(server: Server, { max, trusts, metrics }: ConnectionLimit): void {
  const maxOfPeer = Math.ceil(max / 2);
  const open = new Map<string, number>();
  server.maxConnections = max;
  server.on('drop', () => metrics.refused('all'));
  server.on('connection', (socket) => {
    const address = plainAddress(socket.remoteAddress ?? '');
    const peer = holderOf(address);
    const before = open.get(peer) ?? 0;
    if (before >= maxOfPeer && !trusts(address, 0)) {
      metrics.refused('peer');
      socket.destroy();
      return;
    }
    open.set(peer, before + 1);
    metrics.opened();
    socket.once('close', () => {
      metrics.closed();
      const left = (open.get(peer) ?? 0) - 1;
      if (left > 0) open.set(peer, left);
      else open.delete(peer);
    });
  });
}
