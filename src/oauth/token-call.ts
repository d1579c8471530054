import type { ClientRecord } from '../clients/client-record.ts';
import type { Granted } from './grants/grant.ts';
import type { TokenRequest } from './token-request.input.ts';

/** One call of the token endpoint on its way through the steps. */
export interface TokenCall {
  readonly body: unknown;
  readonly realIp: string;
  readonly fingerprint: string | undefined;
  request: TokenRequest | undefined;
  client: ClientRecord | undefined;
  granted: Granted | undefined;
}

/** What the client asked for, once it is parsed. */
export function requestOf(call: TokenCall): TokenRequest {
  if (!call.request) throw new Error('the request is parsed first');
  return call.request;
}

/** The client, once it is authenticated. */
export function clientOf(call: TokenCall): ClientRecord {
  if (!call.client) throw new Error('the client is authenticated first');
  return call.client;
}
