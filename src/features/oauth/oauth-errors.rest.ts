import { errorEnvelope } from '../../gateway/exchange/refusals.ts';
import type { Refusal, RefusalCode } from '../../platform/errors.ts';
import { grantInputs } from './token-request.input.ts';

/**
 * The descriptions of the error codes of RFC 6749, section 5.2, and of section 4.1.2.1 for codes that the former lacks.
 */
const DESCRIPTIONS = {
  invalid_request: 'The request is malformed, or a parameter is missing, repeated or contradicts another.',
  invalid_client: 'The client could not be authenticated.',
  invalid_grant: 'The credentials or the refresh token are invalid, have expired or belong to another client.',
  invalid_scope: 'None of the requested permissions is granted to the client or the supervisor.',
  unauthorized_client: 'The client may not use this grant type.',
  unsupported_grant_type: `The grant type is not supported. It must be one of ${Object.keys(grantInputs).join(', ')}.`,
  access_denied: 'The client may not call from this address.',
  temporarily_unavailable: 'There were too many requests, or a dependency is unavailable. Try again later.',
  server_error: 'The request could not be completed.',
};

/** An error code of RFC 6749. */
export type OAuthErrorCode = keyof typeof DESCRIPTIONS;

/** The error codes of refusals; any other refusal is an `invalid_request`. */
const CODES: Partial<Record<RefusalCode, OAuthErrorCode>> = {
  invalid_client: 'invalid_client',
  invalid_grant: 'invalid_grant',
  invalid_scope: 'invalid_scope',
  unauthorized_client: 'unauthorized_client',
  unsupported_grant_type: 'unsupported_grant_type',
  mtls_required: 'invalid_client',
  ip_not_allowed: 'access_denied',
  rate_limit_exceeded: 'temporarily_unavailable',
  monthly_limit_exceeded: 'temporarily_unavailable',
  service_unavailable: 'temporarily_unavailable',
  internal_error: 'server_error',
  bad_gateway: 'server_error',
  gateway_timeout: 'server_error',
};

/**
 * Returns the documented error body with the members of RFC 6749 section 5.2; the description of a 400 names each
 * parameter to change.
 */
export function oauthEnvelope(refusal: Refusal) {
  const code = CODES[refusal.code] ?? 'invalid_request';
  const issues = refusal.details.issues?.map(({ path, message }) => `${path || 'the body'} ${message}`).join('; ');
  return {
    ...errorEnvelope(refusal),
    error: code,
    error_description: issues?.replace(NOT_IN_DESCRIPTIONS, '') ?? DESCRIPTIONS[code],
  };
}

/** Matches the characters that a description must not have (RFC 6749 section 5.2). */
const NOT_IN_DESCRIPTIONS = /[^\x20\x21\x23-\x5b\x5d-\x7e]/g;
