import type { ClientRecord } from '../../clients/client-record.ts';
import type { TokenResponse } from '../token-issuer.ts';
import type { GrantType, TokenRequest } from '../token-request.input.ts';

/** What a grant gives, and to whom: a client for itself, or a person who is logged in through it. */
export interface Granted {
  response: TokenResponse;
  isApi: boolean;
}

/** A grant of the token endpoint (RFC 6749 section 1.3). Undefined: it is not granted, a 401. */
export interface Grant {
  grantType: GrantType;
  handle(request: TokenRequest, client: ClientRecord): Promise<Granted | undefined>;
}
