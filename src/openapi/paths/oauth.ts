import type { oas31 } from 'zod-openapi';
import type { ErrorMessage } from '../../errors/app-error.ts';
import { CLIENT, JWT, REFRESH_JWT } from '../examples.ts';
import { headersOf, limitedHeadersOf } from '../headers.ts';
import { refTo } from '../json-schema.ts';
import type { Operation, Operations } from '../operation.ts';
import { json } from '../responses.ts';

const tag = 'Tokens';

/** The client shows itself in the body or by HTTP Basic. */
const security: oas31.SecurityRequirementObject[] = [{}, { clientBasic: [] }];

const STANDARD =
  'A request that is a form, or has HTTP Basic, gets `error` and `error_description` of RFC 6749 beside the three documented members of an error.';

/** What such a call is refused with; RFC 6749's members stand beside those of the envelope. */
function refused(schema: 'TokenError' | 'OAuthError'): Operation['responses'] {
  const refusal = (description: string, message: ErrorMessage, ...names: readonly string[]) =>
    json(description, schema, { code: -1, domain: 0, message }, limitedHeadersOf('Cache-Control', ...names));
  return {
    400: refusal(
      'A parameter is missing, malformed or repeated, or there are two client authentications.',
      'invalid_request',
    ),
    401: refusal(
      'Not this client; or the password, the refresh token, or the node of the supervisor is not right.',
      'invalid_request',
      'WWW-Authenticate',
    ),
    403: refusal("The grant is not one of the client's, or a guard of the client refuses.", 'ip_not_allowed'),
    429: refusal(
      'A rate of the client or its month is used up, or too many secrets were wrong.',
      'rate_limit_exceeded',
      'Retry-After',
    ),
  };
}

const management: oas31.RequestBodyObject = {
  required: true,
  description: 'At most 64 KiB. With HTTP Basic without the client.',
  content: {
    'application/json': { schema: refTo('TokenToManage'), example: { token: JWT, ...CLIENT } },
    'application/x-www-form-urlencoded': { schema: refTo('TokenToManage'), example: { token: JWT } },
  },
};

export const oauthOperations: Operations = {
  'POST /v2/oauth/token': {
    operationId: 'issueToken',
    tag,
    summary: 'Get a pair of tokens',
    description: `The grants \`password\`, \`client_credentials\` and \`refresh_token\`. ${STANDARD}`,
    security,
    requestBody: {
      required: true,
      description: 'At most 64 KiB.',
      content: {
        'application/json': {
          schema: refTo('TokenRequest'),
          examples: {
            password: { value: { grant_type: 'password', ...CLIENT, username: 'admin', password: 'correct horse' } },
            client_credentials: { value: { grant_type: 'client_credentials', ...CLIENT } },
            refresh_token: { value: { grant_type: 'refresh_token', ...CLIENT, refresh_token: REFRESH_JWT } },
          },
        },
        'application/x-www-form-urlencoded': {
          schema: refTo('TokenForm'),
          examples: {
            client_credentials: { summary: 'With HTTP Basic', value: { grant_type: 'client_credentials' } },
          },
        },
      },
    },
    responses: {
      200: json(
        'A pair of tokens.',
        'TokenResponse',
        {
          access_token: JWT,
          refresh_token: REFRESH_JWT,
          expires_in: 900,
          token_type: 'Bearer',
          scope: 'accounts:read wallets:read',
          created_at: 1795257000,
        },
        limitedHeadersOf('Cache-Control'),
      ),
      ...refused('TokenError'),
    },
  },
  'POST /v2/oauth/revoke': {
    operationId: 'revokeToken',
    tag,
    summary: 'End a token (RFC 7009)',
    description:
      'A refresh token ends with its family and its access tokens. A token that is unknown or of another client is left alone.',
    security,
    requestBody: management,
    responses: {
      200: json('The token has ended, or there was nothing to end.', 'Nothing', {}, limitedHeadersOf('Cache-Control')),
      ...refused('OAuthError'),
    },
  },
  'POST /v2/oauth/introspect': {
    operationId: 'introspectToken',
    tag,
    summary: 'Ask what a token says (RFC 7662)',
    security,
    requestBody: management,
    responses: {
      200: json(
        "What a token of the client's node says while it is accepted; of every other that it is not active.",
        'Introspection',
        { active: false },
        limitedHeadersOf('Cache-Control'),
      ),
      ...refused('OAuthError'),
    },
  },
  'GET /.well-known/oauth-authorization-server': {
    operationId: 'getAuthorizationServerMetadata',
    tag,
    summary: 'Discover the endpoints for tokens (RFC 8414)',
    responses: {
      200: json(
        'The metadata.',
        'ServerMetadata',
        {
          issuer: 'https://gateway.example',
          token_endpoint: 'https://gateway.example/v2/oauth/token',
          token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
          grant_types_supported: ['password', 'client_credentials', 'refresh_token'],
          response_types_supported: [],
          scopes_supported: ['accounts:read'],
          revocation_endpoint: 'https://gateway.example/v2/oauth/revoke',
          revocation_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
          introspection_endpoint: 'https://gateway.example/v2/oauth/introspect',
          introspection_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
        },
        headersOf('Cache-Control'),
      ),
    },
  },
};
