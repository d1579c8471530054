import { PERMISSIONS } from './permissions.rules.ts';
import { grantInputs } from './token-request.input.ts';

const AUTH_METHODS = ['client_secret_basic', 'client_secret_post'];

/** The authorization server's metadata (RFC 8414 section 2). `issuer` is what the tokens' `iss` says. */
export function serverMetadata(issuer: string) {
  const base = issuer.replace(/\/+$/, '');
  return {
    issuer,
    token_endpoint: `${base}/v2/oauth/token`,
    token_endpoint_auth_methods_supported: AUTH_METHODS,
    grant_types_supported: Object.keys(grantInputs),
    response_types_supported: [],
    scopes_supported: PERMISSIONS,
    revocation_endpoint: `${base}/v2/oauth/revoke`,
    revocation_endpoint_auth_methods_supported: AUTH_METHODS,
    introspection_endpoint: `${base}/v2/oauth/introspect`,
    introspection_endpoint_auth_methods_supported: AUTH_METHODS,
  };
}
