import { AppError, type Issue } from '../errors/app-error.ts';
import { type ErrorEnvelope, errorEnvelope } from '../errors/envelope.ts';

/** The error codes of RFC 6749 section 5.2, and those that it borrows from section 4.1.2.1 for other statuses. */
export type OAuthErrorCode = keyof typeof DESCRIPTIONS;

const DESCRIPTIONS = {
  invalid_request: 'The request is malformed, or a parameter is missing, repeated or contradicts another.',
  invalid_client: 'The client could not be authenticated.',
  invalid_grant: 'The credentials or the refresh token are not valid, have expired or belong to another client.',
  unauthorized_client: 'The client may not use this grant type.',
  unsupported_grant_type: 'The grant type is not supported.',
  access_denied: 'The client may not call from this address.',
  temporarily_unavailable: 'Too many requests, or a part of the service is away: try again later.',
  server_error: 'The request could not be completed.',
};

/** A refusal whose status and message leave open which code of RFC 6749 it is. */
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

/** 401: not this client, or none. A caller that can show its credentials by HTTP Basic is challenged to. */
export function invalidClient(isChallenged: boolean): OAuthError {
  return new OAuthError(401, 'invalid_client', isChallenged ? { 'WWW-Authenticate': 'Basic realm="portcullis"' } : {});
}

/** The documented envelope alone: its members are exactly three at the token endpoint. */
export function tokenEnvelope({ message }: AppError): ErrorEnvelope {
  return { code: -1, domain: 0, message };
}

/** The documented members with those of RFC 6749 section 5.2 beside them. */
export function oauthEnvelope(error: AppError): OAuthEnvelope {
  const code = codeOf(error);
  return { ...errorEnvelope(error), error: code, error_description: DESCRIPTIONS[code] };
}

/** `oauthEnvelope` without what names single members of the input. */
export function tokenOAuthEnvelope(error: AppError): OAuthEnvelope & { errors?: Issue[] } {
  const { errors: _issues, ...envelope } = oauthEnvelope(error);
  return envelope;
}

function codeOf(error: AppError): OAuthErrorCode {
  if (error instanceof OAuthError) return error.code;
  if (error.message === 'mtls_required') return 'invalid_client';
  if (error.message === 'ip_not_allowed') return 'access_denied';
  if (error.status === 429 || error.status === 503) return 'temporarily_unavailable';
  return error.status < 500 ? 'invalid_request' : 'server_error';
}
