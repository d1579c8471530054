import type { ClientRecord } from '../clients/client-record.ts';
import type { AccessDirectory } from '../oauth/access-directory.ts';
import { runGuards } from '../oauth/guards.ts';
import type { Exchange } from './exchange.ts';

/** Runs the guards of the client whose API token a request carries; login tokens are not guarded after issue. */
export function clientGuards(directory: AccessDirectory): (exchange: Exchange) => void | Promise<void> {
  return function guardClient(exchange: Exchange): void | Promise<void> {
    const { principal } = exchange;
    if (principal?.tokenUse !== 'api' || principal.clientId === undefined) return;
    const client = directory.client(principal.clientId);
    if (client instanceof Promise) return client.then((known) => guard(exchange, known));
    return guard(exchange, client);
  };
}

/** Where a request came from, as the guards see it. */
export function originOf({ req, realIp }: Exchange): { realIp: string; fingerprint: string | undefined } {
  const header = req.headers['ssl-client-fingerprint'];
  return { realIp, fingerprint: Array.isArray(header) ? header.join(',') : header };
}

function guard(exchange: Exchange, client: ClientRecord | undefined): void | Promise<void> {
  if (client) return runGuards({ client, ...originOf(exchange) });
}
