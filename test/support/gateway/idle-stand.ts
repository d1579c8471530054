import type { Server } from 'node:http';
import type { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { compileTrust, correlation } from '../../../src/gateway/exchange/request-head.ts';
import { cors } from '../../../src/gateway/exchange/responses.ts';
import { type ConnectionTimes, Gateway, ingress } from '../../../src/gateway/gateway.ts';
import { silentLog } from '../../../src/lib/log.ts';
import { listening } from './forwarder.ts';

/** The public listener with times of its own; every request is answered `ok`, unless `answer` answers it. */
export interface IdleStand extends AsyncDisposable {
  url: string;
  server: Server;
  /** The statuses of the requests that have ended. */
  ended: number[];
}

export async function startIdleStand(
  times: ConnectionTimes,
  answer: (exchange: Exchange) => void = ({ res }) => void res.end('ok'),
): Promise<IdleStand> {
  const ended: number[] = [];
  const onEnd = ({ res }: Exchange, _aborted: boolean, kept: () => void) => {
    ended.push(res.statusCode);
    kept();
  };
  const capture = (exchange: Exchange) =>
    exchange.audit.capture.install((aborted, kept) => onEnd(exchange, aborted, kept));
  const gateway = new Gateway({
    chain: [correlation, capture, answer],
    trusts: compileTrust([]),
    cors: cors(['*']),
    isAuditFull: () => false,
    onEnd,
    onUnparsed: (_unparsed, kept) => kept(),
    log: silentLog,
  });
  const server = ingress(gateway, times);
  return {
    url: await listening(server),
    server,
    ended,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
