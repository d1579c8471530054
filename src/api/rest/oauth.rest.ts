import type { NextFunction, Request, Response } from 'express';
import type { oas31 } from 'zod-openapi';
import type { Access } from '../../access/access.ts';
import type { ClientRecord } from '../../access/identity/client-record.ts';
import { serverMetadata } from '../../access/token-endpoint/metadata.ts';
import {
  type AuditedClient,
  type ClientCall,
  issueTokens,
  tokenToManage,
} from '../../access/token-endpoint/token-endpoint.ts';
import { clientRequestOf, isStandardRequest } from '../../access/token-endpoint/token-request.input.ts';
import type { TokenManagement } from '../../access/tokens/token-management.ts';
import { bytesOf, readBody } from '../../gateway/exchange/body.ts';
import { exchangeOf } from '../../gateway/exchange/exchange.ts';
import { type ErrorMessage, errorEnvelope } from '../../gateway/exchange/refusals.ts';
import { CLIENT, JWT, REFRESH_JWT } from '../openapi/examples.ts';
import { headersOf, json, limitedHeadersOf, type Operation, refTo } from '../openapi/operation.ts';
import { oauthEnvelope } from '../shared/oauth-errors.ts';
import { JSON_TEXT, KEPT, ServedFiles } from '../shared/served-files.ts';
import { route } from './route.ts';
import { serveFiles } from './static-files.rest.ts';

/** The services that these routes call. */
interface OAuthServices extends Pick<Access, 'directory' | 'throttle' | 'guards' | 'grants' | 'tokenManagement'> {
  /** The issuer of tokens: `PUBLIC_URL`, or the address that the process listens on, once it does. */
  publicUrl: Readonly<{ value: string }>;
}

const tag = 'Tokens';

/**
 * The maximum size of a body in bytes. It is read before the client guards run, since it contains the client's
 * credentials.
 */
const MAX_BODY_BYTES = 64 * 1024;

/** The OpenAPI security of these operations: the client authenticates in the body or by HTTP Basic. */
const security: oas31.SecurityRequirementObject[] = [{}, { clientBasic: [] }];

/**
 * Returns the OpenAPI responses for the refusals of an operation that authenticates a client; their bodies may have the
 * members of RFC 6749 in addition to those of the error envelope.
 */
function refused(schema: 'TokenError' | 'OAuthError'): Operation['responses'] {
  const refusal = (description: string, message: ErrorMessage, ...names: readonly string[]) =>
    json(description, schema, { code: -1, domain: 0, message }, limitedHeadersOf('Cache-Control', ...names));
  return {
    400: refusal(
      'A parameter is missing, malformed or repeated, or there are two client authentications.',
      'invalid_request',
    ),
    401: refusal(
      "The client, the password, the refresh token or the supervisor's node is wrong.",
      'invalid_request',
      'WWW-Authenticate',
    ),
    403: refusal("The grant is not one of the client's, or a guard of the client refuses.", 'ip_not_allowed'),
    429: refusal(
      'A rate or the monthly quota of the client is used up, or there were too many wrong secrets.',
      'rate_limit_exceeded',
      'Retry-After',
    ),
  };
}

/**
 * Runs `work` for a request that authenticates a client. Whether it succeeds or is refused, the audit record is then
 * assigned to the tenant of the client that the request names, even if that has failed to authenticate.
 * @throws Refusal 400 for a body that cannot be read, else what `work` throws.
 */
async function withClient<Result>(
  { directory, guards }: OAuthServices,
  req: Request,
  work: (call: ClientCall, audited: AuditedClient) => Promise<Result>,
): Promise<Result> {
  const exchange = exchangeOf(req);
  const request = clientRequestOf(req.headers, bytesOf(req));
  const audited: AuditedClient = { client: undefined, isApi: true };
  try {
    const guard = (client: ClientRecord) => guards.check(exchange, client);
    return await work({ ...request, realIp: exchange.realIp, guard }, audited);
  } finally {
    // The request has its own error to report, if this lookup fails.
    const client = audited.client ?? (await directory.client(request.namedId ?? '').catch(() => undefined));
    if (client) exchange.found.client = { nodeId: client.nodeId, clientId: client.clientId, isApi: audited.isApi };
  }
}

/** Responses must not be cached (RFC 6749, section 5.1). */
function noStore(_req: Request, res: Response, next: NextFunction): void {
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Pragma', 'no-cache');
  next();
}

/**
 * Issues an access token and a refresh token (specification section 4.1). The error body has exactly the three
 * documented members; a request that is a form or uses HTTP Basic also gets those of RFC 6749, section 5.2.
 */
export const issueToken = route({
  method: 'POST',
  path: '/v2/oauth/token',
  flags: { oauthErrors: true, bodyLimit: MAX_BODY_BYTES },
  operation: {
    operationId: 'issueToken',
    tag,
    summary: 'Get a pair of tokens',
    description:
      'The grants `password`, `client_credentials` and `refresh_token`. A form request, or a request with HTTP Basic, also gets `error` and `error_description` (RFC 6749) in errors.',
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
          schema: refTo('TokenRequest'),
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
  errorBody: (error, { headers }) => (isStandardRequest(headers) ? oauthEnvelope(error) : errorEnvelope(error)),
  handlers: (services: OAuthServices) => [
    noStore,
    readBody,
    async (req, res) => {
      res.json(await withClient(services, req, (call, audited) => issueTokens(services, call, audited)));
    },
  ],
});

const tokenBody: oas31.RequestBodyObject = {
  required: true,
  description: 'At most 64 KiB. With HTTP Basic without the client.',
  content: {
    'application/json': { schema: refTo('TokenToManage'), example: { token: JWT, ...CLIENT } },
    'application/x-www-form-urlencoded': { schema: refTo('TokenToManage'), example: { token: JWT } },
  },
};

/** Returns the handlers that answer with the result of `work` for a token, once its client is authenticated. */
function managing(work: (tokens: TokenManagement, token: string, client: ClientRecord) => Promise<object>) {
  return (services: OAuthServices) => [
    noStore,
    readBody,
    async (req: Request, res: Response): Promise<void> => {
      const { token, client } = await withClient(services, req, (call, audited) =>
        tokenToManage(services, call, audited),
      );
      res.json(await work(services.tokenManagement, token, client));
    },
  ];
}

/** Revokes a token (RFC 7009). */
const revokeToken = route({
  method: 'POST',
  path: '/v2/oauth/revoke',
  flags: { bodyLimit: MAX_BODY_BYTES },
  operation: {
    operationId: 'revokeToken',
    tag,
    summary: 'Revoke a token (RFC 7009)',
    description:
      'A refresh token ends with its family and its access tokens. A token that is unknown or of another client stays as it is.',
    security,
    requestBody: tokenBody,
    responses: {
      200: json(
        'The token is revoked, or there was nothing to revoke.',
        'Nothing',
        {},
        limitedHeadersOf('Cache-Control'),
      ),
      ...refused('OAuthError'),
    },
  },
  errorBody: oauthEnvelope,
  handlers: managing(async (tokens, token, client) => {
    await tokens.revoke(token, client);
    return {};
  }),
});

/** Returns whether a token is active and, if it is, its claims (RFC 7662). */
const introspectToken = route({
  method: 'POST',
  path: '/v2/oauth/introspect',
  flags: { bodyLimit: MAX_BODY_BYTES },
  operation: {
    operationId: 'introspectToken',
    tag,
    summary: 'Introspect a token (RFC 7662)',
    security,
    requestBody: tokenBody,
    responses: {
      200: json(
        "The claims of a token of the client's node while it is accepted; any other token is not active.",
        'Introspection',
        { active: false },
        limitedHeadersOf('Cache-Control'),
      ),
      ...refused('OAuthError'),
    },
  },
  errorBody: oauthEnvelope,
  handlers: managing((tokens, token, client) => tokens.introspect(token, client)),
});

const PATHS = { token: issueToken.path, revocation: revokeToken.path, introspection: introspectToken.path };

/** Returns the metadata of the authorization server: its endpoints and what they support (RFC 8414). */
export const getServerMetadata = route({
  method: 'GET',
  path: '/.well-known/oauth-authorization-server',
  operation: {
    operationId: 'getAuthorizationServerMetadata',
    tag,
    summary: 'Discover the endpoints for tokens (RFC 8414)',
    responses: {
      200: json(
        'The metadata.',
        'ServerMetadata',
        { ...serverMetadata('https://gateway.example', PATHS), scopes_supported: ['accounts:read'] },
        headersOf('Cache-Control', 'ETag'),
      ),
      304: {
        description: 'Unchanged: the client has the version that `If-None-Match` names.',
        headers: headersOf('Cache-Control', 'ETag'),
      },
    },
  },
  handlers: ({ publicUrl }: OAuthServices) => [
    serveFiles(
      new ServedFiles(async () => ({
        bytes: Buffer.from(JSON.stringify(serverMetadata(publicUrl.value, PATHS))),
        type: JSON_TEXT,
        cacheControl: KEPT,
      })),
    ),
  ],
});

/** The routes of the token endpoint and of token management. */
export const oauthRoutes = [issueToken, revokeToken, introspectToken, getServerMetadata];
