import type { TokenIssuer } from '../token-issuer.ts';
import type { Grant } from './grant.ts';

/** The client for itself (RFC 6749 section 4.4): its configured scopes for its configured time. */
export function clientCredentialsGrant(issuer: TokenIssuer): Grant {
  return {
    grantType: 'client_credentials',
    async handle(_request, client) {
      return { response: issuer.forClient(client), isApi: true };
    },
  };
}
