import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import { grantInputs } from './token-request.input.ts';

const AUTH_METHODS = ['client_secret_basic', 'client_secret_post'];

/**
 * Returns the metadata of the authorization server (RFC 8414 section 2). `issuer` is the `iss` of its tokens; `paths`
 * are relative to it.
 */
export function serverMetadata(issuer: string, paths: Record<'token' | 'revocation' | 'introspection', string>) {
  const base = issuer.replace(/\/+$/, '');
  return {
    issuer,
    token_endpoint: `${base}${paths.token}`,
    token_endpoint_auth_methods_supported: AUTH_METHODS,
    grant_types_supported: Object.keys(grantInputs),
    response_types_supported: [],
    scopes_supported: PERMISSIONS,
    revocation_endpoint: `${base}${paths.revocation}`,
    revocation_endpoint_auth_methods_supported: AUTH_METHODS,
    introspection_endpoint: `${base}${paths.introspection}`,
    introspection_endpoint_auth_methods_supported: AUTH_METHODS,
  };
}
