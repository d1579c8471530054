import type { ClientRecord } from '../clients/client-record.ts';
import type { ClientCredentials } from './basic-client.rules.ts';
import type { Granted } from './grants/grant.ts';
import type { GuardedCall } from './guards.ts';
import type { TokenRequest } from './token-request.input.ts';

/** One call of a route that authenticates a client, on its way through the steps. */
export interface ClientCall {
  /** The body, as parsed JSON or as a form. */
  readonly parameters: unknown;
  readonly authorization: string | undefined;
  /** Whom wrong secrets are counted for. */
  readonly realIp: string;
  readonly address: string | undefined;
  readonly fingerprint: string | undefined;
  /** What the guards put on the answer, whatever it is. */
  readonly headers: Record<string, string>;
  /** Undefined where nobody can have these: a 401. */
  credentials: ClientCredentials | undefined;
  client: ClientRecord | undefined;
  /** The call as the guards see it, one after the other. */
  guarded: GuardedCall | undefined;
}

/** One call of the token endpoint. */
export interface TokenCall extends ClientCall {
  request: TokenRequest | undefined;
  granted: Granted | undefined;
}

/** What the client asked for, once it is parsed. */
export function requestOf(call: TokenCall): TokenRequest {
  if (!call.request) throw new Error('the request is parsed first');
  return call.request;
}

/** The client, once it is authenticated. */
export function clientOf(call: ClientCall): ClientRecord {
  if (!call.client) throw new Error('the client is authenticated first');
  return call.client;
}
