import { z } from 'zod';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import type { TokenResponse } from '../../access/tokens/token-issuer.ts';
import {
  type DocumentedSchemas,
  envelope,
  ISSUES,
  inputSchema,
  type JsonSchema,
  merged,
  refTo,
  uri,
} from '../../api/openapi/operation.ts';
import type { ErrorMessage } from '../../gateway/exchange/refusals.ts';
import type { serverMetadata } from './oauth.rest.ts';
import type { OAuthErrorCode } from './oauth-errors.rest.ts';
import { clientInput, type GrantType, grantInputs, tokenInput } from './token-request.input.ts';

const SCOPE =
  'The permissions to request, separated by spaces; everything by default. Unknown names are ignored, and so is a list, or what tabs or line feeds separate.';

const OAUTH_MESSAGES = [
  'invalid_request',
  'ip_not_allowed',
  'mtls_required',
  'rate_limit_exceeded',
  'monthly_limit_exceeded',
] as const satisfies readonly ErrorMessage[];

const OAUTH_MEMBERS: Record<string, JsonSchema> = {
  error: {
    enum: [
      'invalid_request',
      'invalid_client',
      'invalid_grant',
      'unauthorized_client',
      'unsupported_grant_type',
      'access_denied',
      'temporarily_unavailable',
    ] satisfies OAuthErrorCode[],
  },
  error_description: { type: 'string' },
};

/** The members of RFC 6749, each of which requires the other. */
const TOGETHER = { error: ['error_description'], error_description: ['error'] };

/** The schema of each grant. */
const GRANTS = {
  password: 'PasswordGrant',
  client_credentials: 'ClientCredentialsGrant',
  refresh_token: 'RefreshTokenGrant',
} as const satisfies Record<GrantType, string>;

/** A client's credentials in the body, none of which is required: HTTP Basic is the alternative. */
const { required: _required, ...client } = inputSchema(clientInput);

/** What the token endpoint adds to the OpenAPI document. */
export const oauthSchemas: DocumentedSchemas = {
  inputs: {
    PasswordGrant: merged(inputSchema(grantInputs.password), client),
    ClientCredentialsGrant: merged(inputSchema(grantInputs.client_credentials), client),
    RefreshTokenGrant: merged(inputSchema(grantInputs.refresh_token), client),
    TokenRequest: {
      oneOf: Object.values(GRANTS).map(refTo),
      discriminator: {
        propertyName: 'grant_type',
        // Some generators read a bare name as the name of a file.
        mapping: Object.fromEntries(Object.entries(GRANTS).map(([grant, name]) => [grant, refTo(name).$ref])),
      },
    },
    TokenToManage: merged(inputSchema(tokenInput), client),
  },
  outputs: {
    TokenResponse: z.strictObject({
      access_token: z.string(),
      refresh_token: z.string(),
      expires_in: z
        .int()
        .min(1)
        .meta({ description: 'The lifetime of the access token in seconds, not a point in time.' }),
      token_type: z.literal('Bearer'),
      scope: z.string().meta({ description: 'The permissions, separated by spaces.' }),
      created_at: z.int().meta({ description: 'The time of issue, as a Unix timestamp in seconds.' }),
    }) satisfies z.ZodType<TokenResponse>,
    // One object: a generated client cannot have a boolean with a single value.
    Introspection: z
      .strictObject({
        active: z.boolean(),
        scope: z.string().optional(),
        username: z.string().optional(),
        token_type: z.literal('Bearer').optional(),
        client_id: z.string().optional(),
        exp: z.number().optional(),
        iat: z.number().optional(),
        sub: z.string().optional(),
        aud: z.string().optional(),
        iss: z.string().optional(),
        jti: z.string().optional(),
        token_use: z.enum(['login', 'api', 'forgot_password', 'refresh']).optional(),
      })
      .meta({ description: 'For an inactive token only `active` is returned; otherwise at least `token_use`.' }),
    ServerMetadata: z.strictObject({
      issuer: uri(),
      token_endpoint: uri(),
      token_endpoint_auth_methods_supported: z.array(z.string()),
      grant_types_supported: z.array(z.string()),
      response_types_supported: z.array(z.never()),
      scopes_supported: z.array(z.enum(PERMISSIONS)),
      revocation_endpoint: uri(),
      revocation_endpoint_auth_methods_supported: z.array(z.string()),
      introspection_endpoint: uri(),
      introspection_endpoint_auth_methods_supported: z.array(z.string()),
    }) satisfies z.ZodType<Omit<ReturnType<typeof serverMetadata>, 'scopes_supported'>>,
  },
  errors: {
    TokenError: { ...envelope(OAUTH_MESSAGES, OAUTH_MEMBERS), dependentRequired: TOGETHER },
    OAuthError: { ...envelope(OAUTH_MESSAGES, { errors: ISSUES, ...OAUTH_MEMBERS }), dependentRequired: TOGETHER },
  },
  descriptions: {
    PasswordGrant: {
      username:
        'The login name of a supervisor. Letter case, composition, blanks around it and invisible characters do not count.',
      password: 'Normalised to NFC.',
      scope: SCOPE,
    },
    ClientCredentialsGrant: { scope: SCOPE },
    RefreshTokenGrant: { scope: SCOPE },
    TokenToManage: { token: 'An access token or a refresh token.' },
  },
};
