import type { NextFunction, Request, Response } from 'express';
import type { oas31 } from 'zod-openapi';
import type { ClientRecord } from '../../access/identity/callers.ts';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import type { AccessDirectory } from '../../access/revocation/access-cache.ts';
import type { TokenManagement } from '../../access/tokens/revocations.ts';
import { headersOf, json, limitedHeadersOf, type Operation, refTo } from '../../api/openapi/operation.ts';
import { route } from '../../api/rest/route.ts';
import { serveFiles } from '../../api/rest/system.rest.ts';
import { JSON_TEXT, KEPT, ServedFiles } from '../../api/shared/served-files.ts';
import { withoutOwnSecrets } from '../../audit/masked-names.ts';
import { BODY_WEIGHT, bytesOf, exchangeOf, readBody } from '../../gateway/exchange/exchange.ts';
import { type ErrorMessage, errorEnvelope } from '../../gateway/exchange/refusals.ts';
import { heapWeight } from '../../lib/heap-weight.ts';
import { OTHER_ACCOUNTS } from '../../platform/held-memory.ts';
import { oauthEnvelope } from './oauth-errors.rest.ts';
import {
  type ClientCall,
  issueTokens,
  type TokenEndpointDependencies,
  tokenToManage,
} from './token-endpoint.service.ts';
import { clientRequestOf, grantInputs, isStandardRequest } from './token-request.input.ts';

/** The client credentials of the examples. */
const CLIENT = {
  client_id: '5f0a3c7e-9f43-4d0f-8a9e-4e7b1f8d2c61',
  client_secret: 'q3Jm7Yk0pXw2Zc9Rb5Tn8Vd1Hs4Lf6Ga0Ke2Uo7Ii9M',
};

/** Tokens of the right form, with invented signatures. */
const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJleGFtcGxlIn0.c2lnbmF0dXJl';

const REFRESH_JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJyZWZyZXNoIn0.c2lnbmF0dXJl';

/** The services that these routes call. */
interface OAuthServices extends TokenEndpointDependencies {
  directory: AccessDirectory;
  tokenManagement: TokenManagement;
  /** The issuer of tokens: `PUBLIC_URL`, or the address that the process listens on, once it does. */
  publicUrl: Readonly<{ value: string }>;
}

const tag = 'Tokens';

/**
 * The maximum size of a body in bytes. It is read before the client guards run, since it contains the client's
 * credentials.
 */
export const MAX_BODY_BYTES = 64 * 1024;

/** The OpenAPI security of these operations: the client authenticates in the body or by HTTP Basic. */
const security: oas31.SecurityRequirementObject[] = [{}, { clientBasic: [] }];

/**
 * Returns the OpenAPI responses for the refusals of an operation that authenticates a client; their bodies may have the
 * members of RFC 6749 in addition to the members of the error envelope.
 */
function refusalResponses(schema: 'TokenError' | 'OAuthError'): Operation['responses'] {
  const refusal = (description: string, message: ErrorMessage, ...names: readonly string[]) =>
    json(description, schema, { code: -1, domain: 0, message }, limitedHeadersOf('Cache-Control', ...names));
  return {
    400: refusal(
      'A parameter is missing, malformed or repeated, or there are two client authentications.',
      'invalid_request',
    ),
    401: refusal(
      'The client credentials, the password or the refresh token is wrong, or the supervisor belongs to another tenant.',
      'invalid_request',
      'WWW-Authenticate',
    ),
    403: refusal(
      'The client may not use the grant, or may not call from this address or with this certificate.',
      'ip_not_allowed',
    ),
    429: refusal(
      'The client has exceeded a rate limit or its monthly quota, or sent too many wrong secrets.',
      'rate_limit_exceeded',
      'Retry-After',
    ),
  };
}

/**
 * Runs `work` for a request that names a client. Whether it succeeds or is refused, the audit record is then
 * assigned to the tenant of the client that the request names, even if that has failed to authenticate. The record
 * gets `isApi`, unless the result has its own.
 * @throws Refusal 400 for a body that cannot be read, else what `work` throws.
 */
export async function withClient<Result extends object>(
  { directory }: Pick<OAuthServices, 'directory'>,
  req: Request,
  work: (call: ClientCall) => Promise<Result>,
  isApi?: boolean,
): Promise<Result> {
  const exchange = exchangeOf(req);
  const { namedId, isOwn, result } = begin();
  const outcome: { client?: ClientRecord; isApi?: boolean; subject?: string } = await result.catch(() => ({}));
  // The request has its own error to report, if this lookup fails.
  const client = outcome.client ?? (await directory.client(namedId ?? '').catch(() => undefined));
  if (client) {
    const { nodeId, clientId } = client;
    exchange.state.client = { nodeId, clientId, subject: outcome.subject, isApi: outcome.isApi ?? isApi ?? isOwn };
  }
  return result;

  // Apart, so that only what the work itself needs of the body is in memory while it waits.
  function begin(): { namedId: string | undefined; isOwn: boolean; result: Promise<Result> } {
    const bytes = bytesOf(req);
    req.body = undefined;
    const sentId = exchange.correlationId;
    // In a body that cannot be read any text may be a secret.
    exchange.correlationId = withoutOwnSecrets(sentId, bytes.includes(sentId) ? [sentId] : []);
    const { namedId, isOwn, ...clientRequest } = clientRequestOf(req.headers, bytes);
    const { client_secret, password, refresh_token, token } = Object(clientRequest.parameters);
    const secrets = [client_secret, password, refresh_token, token, clientRequest.basic?.secret];
    exchange.correlationId = withoutOwnSecrets(sentId, secrets);
    exchange.held?.charge(heapWeight(clientRequest.parameters) - BODY_WEIGHT * bytes.length);
    return { namedId, isOwn, result: work({ ...clientRequest, realIp: exchange.realIp, exchange }) };
  }
}

/**
 * Begins a request that authenticates its caller: charges it to the account of those, and forbids caching its response
 * (RFC 6749, section 5.1).
 */
export function beginAuthentication(req: Request, res: Response, next: NextFunction): void {
  const { held } = exchangeOf(req);
  held?.moveTo(OTHER_ACCOUNTS.authentication, held.part);
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Pragma', 'no-cache');
  next();
}

/**
 * Issues an access token and a refresh token (docs/contract.md, 4.1-01). The error body has exactly the three
 * documented members; a request that is a form or uses HTTP Basic also gets the members of RFC 6749, section 5.2.
 */
export const issueToken = route({
  method: 'POST',
  path: '/v2/oauth/token',
  oauthErrors: true,
  bodyLimit: MAX_BODY_BYTES,
  operation: {
    operationId: 'issueToken',
    tag,
    summary: 'Get a pair of tokens',
    description: `Supports the grants ${Object.keys(grantInputs).join(', ')}. Errors of form requests and of requests with HTTP Basic also have error and error_description (RFC 6749).`,
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
      ...refusalResponses('TokenError'),
    },
  },
  errorBody: (error, { headers }) => (isStandardRequest(headers) ? oauthEnvelope(error) : errorEnvelope(error)),
  handlers: (services: OAuthServices) => [
    beginAuthentication,
    readBody,
    async (req, res) => {
      const { response } = await withClient(services, req, (call) => issueTokens(services, call));
      res.json(response);
    },
  ],
});

const tokenBody: oas31.RequestBodyObject = {
  required: true,
  description: 'At most 64 KiB. With HTTP Basic, leave out the client credentials.',
  content: {
    'application/json': { schema: refTo('TokenToManage'), example: { token: JWT, ...CLIENT } },
    'application/x-www-form-urlencoded': { schema: refTo('TokenToManage'), example: { token: JWT } },
  },
};

/** Returns the handlers that answer with the result of `work` for a token, once its client is authenticated. */
function managing(work: (tokens: TokenManagement, token: string, client: ClientRecord) => Promise<object>) {
  return (services: OAuthServices) => [
    beginAuthentication,
    readBody,
    async (req: Request, res: Response): Promise<void> => {
      const { token, client } = await withClient(services, req, (call) => tokenToManage(services, call));
      res.json(await work(services.tokenManagement, token, client));
    },
  ];
}

/** Revokes a token (RFC 7009). */
const revokeToken = route({
  method: 'POST',
  path: '/v2/oauth/revoke',
  bodyLimit: MAX_BODY_BYTES,
  operation: {
    operationId: 'revokeToken',
    tag,
    summary: 'Revoke a token (RFC 7009)',
    description:
      'Revoking a refresh token revokes its family and their access tokens. A token that is unknown or belongs to another client is not changed.',
    security,
    requestBody: tokenBody,
    responses: {
      200: json(
        'The token is revoked, or there was nothing to revoke.',
        'Nothing',
        {},
        limitedHeadersOf('Cache-Control'),
      ),
      ...refusalResponses('OAuthError'),
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
  bodyLimit: MAX_BODY_BYTES,
  operation: {
    operationId: 'introspectToken',
    tag,
    summary: 'Introspect a token (RFC 7662)',
    security,
    requestBody: tokenBody,
    responses: {
      200: json(
        "The claims of the token if it is valid and belongs to the client's tenant; otherwise `active` is false.",
        'Introspection',
        { active: false },
        limitedHeadersOf('Cache-Control'),
      ),
      ...refusalResponses('OAuthError'),
    },
  },
  errorBody: oauthEnvelope,
  handlers: managing((tokens, token, client) => tokens.introspect(token, client)),
});

const PATHS = { token: issueToken.path, revocation: revokeToken.path, introspection: introspectToken.path };

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

/** Returns the metadata of the authorization server: its endpoints and what they support (RFC 8414). */
export const getServerMetadata = route({
  method: 'GET',
  path: '/.well-known/oauth-authorization-server',
  operation: {
    operationId: 'getAuthorizationServerMetadata',
    tag,
    summary: 'Get the authorization server metadata (RFC 8414)',
    responses: {
      200: json(
        'The metadata.',
        'ServerMetadata',
        { ...serverMetadata('https://gateway.example', PATHS), scopes_supported: ['accounts:read'] },
        headersOf('Cache-Control', 'ETag'),
      ),
      304: {
        description: 'Not modified: the version in `If-None-Match` is current.',
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
