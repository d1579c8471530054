import type { Answer, Portcullis } from '../harness.ts';
import type { ClientCredentials } from './clients.ts';

export const FORM = 'application/x-www-form-urlencoded';

/** `Authorization` of a client (RFC 6749 section 2.3.1). */
export function basicOf({ client_id, client_secret }: ClientCredentials): string {
  return basicText(`${encodeURIComponent(client_id)}:${encodeURIComponent(client_secret)}`);
}

/** `Authorization` of HTTP Basic with this text, whatever it is. */
export function basicText(text: string | Buffer): string {
  return `Basic ${Buffer.from(text).toString('base64')}`;
}

/** Posts a form, with or without a client's HTTP Basic. */
export function postForm(
  p: Portcullis,
  path: string,
  form: Record<string, string> | string,
  authorization?: string,
): Promise<Answer> {
  const body = typeof form === 'string' ? form : new URLSearchParams(form).toString();
  const headers = { 'content-type': FORM, ...(authorization === undefined ? {} : { authorization }) };
  return p.call('POST', path, { body, headers });
}

/** A refusal's body in RFC 6749's members beside the documented ones, byte for byte. */
export function oauthEnvelope(
  message: string,
  error: keyof typeof DESCRIPTIONS,
  description: string = DESCRIPTIONS[error],
): string {
  return `{"code":-1,"domain":0,"message":"${message}","error":"${error}","error_description":"${description}"}`;
}

const DESCRIPTIONS = {
  invalid_request: 'The request is malformed, or a parameter is missing, repeated or contradicts another.',
  invalid_client: 'The client could not be authenticated.',
  invalid_grant: 'The credentials or the refresh token are invalid, have expired or belong to another client.',
  invalid_scope: 'None of the requested permissions is granted to the client or the supervisor.',
  unauthorized_client: 'The client may not use this grant type.',
  unsupported_grant_type:
    'The grant type is not supported. It must be one of password, client_credentials, refresh_token.',
  access_denied: 'The client may not call from this address.',
  temporarily_unavailable: 'There were too many requests, or a dependency is unavailable. Try again later.',
  server_error: 'The request could not be completed.',
};
