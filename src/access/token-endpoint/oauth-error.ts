import { AppError, BASIC_CHALLENGE, type ErrorEnvelope, errorEnvelope } from '../../platform/errors.ts';
import { grantInputs } from './token-request.input.ts';

/** An error code of RFC 6749, section 5.2, or of section 4.1.2.1 for statuses that the former does not cover. */
export type OAuthErrorCode = keyof typeof DESCRIPTIONS;

const DESCRIPTIONS = {
  invalid_request: 'The request is malformed, or a parameter is missing, repeated or contradicts another.',
  invalid_client: 'The client could not be authenticated.',
  invalid_grant: 'The credentials or the refresh token are not valid, have expired or belong to another client.',
  unauthorized_client: 'The client may not use this grant type.',
  unsupported_grant_type: `The grant type is not supported. It must be one of ${Object.keys(grantInputs).join(', ')}.`,
  access_denied: 'The client may not call from this address.',
  temporarily_unavailable: 'Too many requests, or a part of the service is away: try again later.',
  server_error: 'The request could not be completed.',
};

/** An error with its code of RFC 6749, which its status and message alone do not determine. */
export class OAuthError extends AppError {
  readonly code: OAuthErrorCode;

  constructor(status: number, code: OAuthErrorCode, headers: Record<string, string> = {}) {
    super(status, 'invalid_request', { headers });
    this.code = code;
  }
}

interface OAuthEnvelope extends ErrorEnvelope {
  error: OAuthErrorCode;
  error_description: string;
}

/**
 * Returns the 401 error for a client that is not authenticated, with a challenge when the caller may use HTTP Basic.
 */
export function invalidClient(isChallenged: boolean): OAuthError {
  return new OAuthError(401, 'invalid_client', isChallenged ? BASIC_CHALLENGE : {});
}

/**
 * Returns the documented error body with the members of RFC 6749 section 5.2; the description of a 400 names each
 * parameter to change.
 */
export function oauthEnvelope(error: AppError): OAuthEnvelope {
  const code = codeOf(error);
  const faults = error.issues?.map(({ path, message }) => `${path || 'the body'} ${message}`).join('; ');
  return { ...errorEnvelope(error), error: code, error_description: faults?.replace(UNTOLD, '') ?? DESCRIPTIONS[code] };
}

/** Matches the characters that a description must not have (RFC 6749 section 5.2). */
const UNTOLD = /[^\x20\x21\x23-\x5b\x5d-\x7e]/g;

function codeOf(error: AppError): OAuthErrorCode {
  if (error instanceof OAuthError) return error.code;
  if (error.message === 'mtls_required') return 'invalid_client';
  if (error.message === 'ip_not_allowed') return 'access_denied';
  if (error.status === 429 || error.status === 503) return 'temporarily_unavailable';
  return error.status < 500 ? 'invalid_request' : 'server_error';
}
