import type { ClientRecord } from '../../clients/client-record.ts';
import type { TokenResponse } from '../token-issuer.ts';
import type { GrantType, TokenRequest } from '../token-request.input.ts';

/** A grant of the token endpoint (RFC 6749 section 1.3). Undefined: it is not granted, a 401. */
export interface Grant {
  grantType: GrantType;
  handle(request: TokenRequest, client: ClientRecord): Promise<TokenResponse | undefined>;
}
