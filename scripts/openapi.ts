import { z } from 'zod';
import type { oas31 } from 'zod-openapi';
import { PERMISSIONS, type Permission } from '../src/access/identity/permissions.rules.ts';
import {
  type DescribedRoute,
  type Descriptions,
  type DocumentedSchemas,
  envelope,
  headers,
  type JsonSchema,
  type Operation,
  parameterOf,
  responseOf,
  responses,
  schemaOf,
  uri,
} from '../src/api/openapi/operation.ts';
import { ROUTES } from '../src/app/routes.ts';
import { accountSchemas } from '../src/features/accounts/accounts.rest.ts';
import { assetSchemas } from '../src/features/assets/assets.rest.ts';
import { gasFeeSchemas } from '../src/features/gas-fee/gas-fee.rest.ts';
import { oauthSchemas } from '../src/features/oauth/oauth.openapi.ts';
import { migrationSchemas } from '../src/features/user-migrations/user-migrations.openapi.ts';
import { walletRuleSchemas } from '../src/features/wallet-rules/wallet-rules.openapi.ts';
import { webhookSchemas } from '../src/features/webhook/webhook.openapi.ts';
import type { Endpoint, GatewayConfig } from '../src/gateway/endpoints/gateway-config.ts';
import type { ErrorMessage } from '../src/gateway/exchange/refusals.ts';
import { MAX_CORRELATION_ID_BYTES } from '../src/gateway/exchange/request-head.ts';
import { IDEMPOTENCY_KEY } from '../src/idempotency/idempotent-responses.ts';
import { type HealthReport, VERSION } from '../src/platform/health.ts';

/** The schemas of error bodies and of an empty body, by name. */
export const errorSchemas: Record<string, JsonSchema> = {
  Issue: {
    type: 'object',
    properties: {
      path: {
        type: 'string',
        description: 'The path of the member, such as `users[3].email`; empty for the whole body.',
      },
      message: { type: 'string' },
    },
    required: ['path', 'message'],
    additionalProperties: false,
  },
  MethodNotAllowed: envelope(['method_not_allowed'] satisfies ErrorMessage[]),
  Nothing: { type: 'object', additionalProperties: false },
};

/** What each permission allows, on every interface. */
const SCOPES: Record<Permission, string> = {
  'accounts:read': 'Lists accounts.',
  'wallets:read': 'Read wallets, networks and currencies.',
  'wallets:write': 'Assign networks to wallets.',
  'wallet-rules:read': 'Read and preview wallet rules.',
  'wallet-rules:write': 'Create, replace, enable and disable wallet rules.',
  'users:read': 'Read users and their migrations.',
  'users:migrate': 'Migrate users: one, in bulk, or from files.',
  'users:erase': 'Erase the personal data of users.',
  'transactions:read': 'Read transactions and their updates.',
  'transactions:write': 'Registers transactions.',
  'tokens:read': 'Read tokenized assets.',
  'clients:manage': 'Manage clients and supervisors.',
  'audit:read': 'Read the audit log.',
};

const TEXT: JsonSchema = { type: 'string' };

/** The descriptions and schemas of the header fields that operations share, by name. */
const HEADER_PARAMETERS: Readonly<Record<string, readonly [description: string, schema: JsonSchema]>> = {
  'X-Correlation-ID': [
    'A correlation id, forwarded and echoed unchanged. If it is absent or empty, the gateway generates a UUID.',
    { type: 'string', maxLength: MAX_CORRELATION_ID_BYTES },
  ],
  'Idempotency-Key': [
    'Makes a retry safe. For a day, the same request by the same caller with the same key returns the first response; a different body returns 409. Successful responses and documented migration errors are stored; any other error leaves the key unused.',
    { type: 'string', pattern: IDEMPOTENCY_KEY.source },
  ],
  'If-Match': [
    'Replaces the rule only if it still has this version: the ETag of an earlier response, or `*` for any.',
    TEXT,
  ],
  'webhook-id': ['Standard Webhooks: the id of the message. Send all three `webhook-` headers or none.', TEXT],
  'webhook-timestamp': [
    'Standard Webhooks: when it was sent, in seconds since 1970; at most 300 seconds from now.',
    TEXT,
  ],
  'webhook-signature': [
    'Standard Webhooks: `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; of several, separated by spaces, one must be valid. The three headers are checked if the operator has set a signing secret.',
    TEXT,
  ],
};

/** The parameters that operations share, by name. */
const parameters: Record<string, oas31.ParameterObject> = Object.fromEntries(
  Object.entries(HEADER_PARAMETERS).map(([name, [description, schema]]) => [
    name,
    { name, in: 'header', description, schema },
  ]),
);

const INTRODUCTION = [
  'The integration gateway of a custody and tokenization platform.',
  'Every response has an `X-Correlation-ID`. An error is `{code: -1, domain: 0, message}`; a 400 for invalid members adds `errors`.',
  'An optional member that is null counts as absent. A UUID may be in upper or lower case and is stored in lower case. Unknown members are ignored.',
  'Paths match exactly: letter case and a trailing slash matter. Any path accepts `OPTIONS`. GraphQL is served at `/graphql` and has a separate schema. In names, `node` means tenant.',
].join('\n\n');

/** What the document describes. */
export interface DocumentedInterface {
  routes: readonly DescribedRoute[];
  nouns: readonly DocumentedSchemas[];
  /** The groups of operations, in the order in which they are shown. */
  tags: readonly oas31.TagObject[];
}

const state = () => z.enum(['ok', 'down']);

const healthSchemas: DocumentedSchemas = {
  outputs: {
    Health: z.strictObject({
      status: z.enum(['ok', 'degraded', 'down']),
      version: z.string(),
      uptime: z.int().min(0).meta({ description: 'Seconds since the start.' }),
      checks: z.strictObject({ database: state(), cache: state(), bus: state(), audit: z.enum(['ok', 'full']) }),
    }) satisfies z.ZodType<HealthReport>,
  },
};

const mcpSchemas: DocumentedSchemas = {
  outputs: {
    ResourceMetadata: z.strictObject({
      resource: uri(),
      authorization_servers: z.array(uri()),
      scopes_supported: z.array(z.enum(PERMISSIONS)),
      bearer_methods_supported: z.array(z.string()),
      resource_name: z.string(),
    }),
  },
};

/** What the OpenAPI document describes. */
export const DOCUMENTED: DocumentedInterface = {
  routes: ROUTES,
  nouns: [
    oauthSchemas,
    walletRuleSchemas,
    webhookSchemas,
    migrationSchemas,
    accountSchemas,
    assetSchemas,
    healthSchemas,
    gasFeeSchemas,
    mcpSchemas,
  ],
  tags: [
    { name: 'Tokens', description: 'Issue, refresh, revoke and introspect tokens.' },
    { name: 'Wallets', description: 'Rules and networks of wallets.' },
    { name: 'Webhook', description: 'Called by the chain processor only.' },
    { name: 'Users', description: 'Migration of users who already have a wallet.' },
    { name: 'Accounts', description: 'The accounts of a tenant.' },
    { name: 'Assets', description: 'Tokenized assets.' },
    { name: 'Health', description: 'Probes.' },
    { name: 'Blockchain', description: 'Gas prices of networks.' },
    { name: 'MCP', description: 'The Model Context Protocol, for agents of tenants.' },
  ],
};

/**
 * Builds the OpenAPI 3.1 document of the REST interface from the routes and the endpoints of a gateway configuration.
 * @throws Error for an endpoint without a route, or a route with an operation but without an endpoint.
 */
export function openApiDocument(
  { endpoints, services }: GatewayConfig,
  { routes, nouns, tags }: DocumentedInterface,
): oas31.OpenAPIObject {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portcullis',
      version: VERSION,
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...tags],
    paths: pathsOf(endpoints, Object.keys(services), routes),
    components: {
      schemas: schemasOf(nouns),
      responses,
      parameters,
      headers,
      securitySchemes: securitySchemes(routes),
    },
  };
}

function schemasOf(nouns: readonly DocumentedSchemas[]): Record<string, JsonSchema> {
  const merged: Required<DocumentedSchemas>[] = nouns.map((noun) => ({
    ...{ inputs: {}, outputs: {}, errors: {}, descriptions: {} },
    ...noun,
  }));
  const entries = merged.flatMap(({ inputs, outputs, errors }) => [
    ...Object.entries(inputs).map(([name, schema]) => [name, withNulls(schema)] as const),
    ...Object.entries(outputs).map(([name, schema]) => [name, schemaOf(schema, 'output')] as const),
    ...Object.entries(errors),
  ]);
  const descriptions = Object.assign({}, ...merged.map((noun) => noun.descriptions));
  return described({ ...Object.fromEntries(entries), ...errorSchemas }, descriptions);
}

function pathsOf(
  endpoints: readonly Endpoint[],
  services: string[],
  routes: readonly DescribedRoute[],
): oas31.PathsObject {
  const byName = new Map(routes.map(({ method, path, operation }) => [`${method} ${path}`, operation]));
  const paths: Record<string, oas31.PathItemObject> = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replace(/\*\*$/, '{path}');
    // OpenAPI cannot describe a preflight request to any path.
    for (const method of endpoint.methods.filter((registered) => registered !== 'OPTIONS')) {
      const name = `${method} ${endpoint.path}`;
      if (!byName.has(name)) throw new Error(`${name} is not described`);
      const operation = byName.get(name);
      byName.delete(name);
      if (operation) {
        paths[path] = { ...paths[path], [method.toLowerCase()]: operationObject(endpoint, operation, services) };
      }
    }
  }
  if (byName.size > 0) throw new Error(`not registered: ${[...byName.keys()].join(', ')}`);
  return paths;
}

/** Returns an operation with what the gateway adds before the route: headers, a token and refusals. */
function operationObject(endpoint: Endpoint, operation: Operation, services: string[]): oas31.OperationObject {
  const { operationId, tag, summary, deprecated, parameters: own = [], security = [] } = operation;
  const isProtected = endpoint.visibility === 'protected';
  const description = descriptionOf(endpoint, operation);
  return {
    tags: [tag],
    operationId,
    summary,
    ...(description === '' ? {} : { description }),
    ...(deprecated === undefined ? {} : { deprecated }),
    security: isProtected ? bearerSecurity(endpoint) : security,
    parameters: [
      ...pathParameters(operation.pathParameters),
      ...own,
      targetServer(endpoint.services.length > 0 ? endpoint.services : services),
      parameterOf('X-Correlation-ID'),
    ],
    ...(operation.requestBody === undefined ? {} : { requestBody: operation.requestBody }),
    responses: { ...gatewayResponses(endpoint), ...operation.responses },
  };
}

function descriptionOf({ permissions }: Endpoint, { description = '' }: Operation): string {
  const needs = permissions.map((permission) => `Needs the permission \`${permission}\`.`);
  return [...(description === '' ? [] : [description]), ...needs].join('\n\n');
}

/** Returns the responses of the gateway itself. An endpoint with a closed list of statuses has no 503. */
function gatewayResponses({ visibility, statuses }: Endpoint): Operation['responses'] {
  const tokens = {
    401: responseOf('Unauthorized'),
    403: responseOf('Forbidden'),
    429: responseOf('TooManyRequests'),
  };
  return {
    400: responseOf('BadRequest'),
    404: responseOf('NotOfService'),
    500: responseOf('InternalError'),
    ...(visibility === 'protected' ? tokens : {}),
    ...(statuses === 'open' ? { 503: responseOf('ServiceUnavailable') } : {}),
  };
}

/**
 * Returns the security alternatives of a protected endpoint: a token of any class that it accepts, with its
 * permissions.
 */
function bearerSecurity({ tokens, permissions }: Endpoint): oas31.SecurityRequirementObject[] {
  const schemes = tokens.flatMap((tokenClass): (keyof ReturnType<typeof securitySchemes>)[] => {
    switch (tokenClass) {
      case 'user':
        return ['oauth2', 'userToken'];
      case 'legacy':
        return ['legacyToken'];
      case 'discover':
        throw new Error('no documented endpoint takes discover tokens');
      default:
        return tokenClass satisfies never;
    }
  });
  return schemes.map((scheme) => ({ [scheme]: [...permissions] }));
}

/** Returns the security schemes, which describe how callers authenticate (docs/contract.md, 5). */
function securitySchemes(routes: readonly DescribedRoute[]) {
  const tokenUrl = routes.find(({ operation }) => operation?.operationId === 'issueToken')?.path ?? '';
  const flow = { tokenUrl, refreshUrl: tokenUrl, scopes: SCOPES };
  return {
    oauth2: {
      type: 'oauth2',
      description:
        "Issues a user token with the scopes of the client (client credentials) or the permissions of the supervisor's role (password). A requested `scope` narrows them: only permissions, and scopes of the client, count. Of those, what is granted is issued; if nothing is, the status is 400 (`error`: `invalid_scope`). Without such a name everything is issued. A refresh issues at most the scope of its refresh token if that was narrowed.",
      flows: { clientCredentials: flow, password: flow },
    },
    userToken: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'An access token of the token endpoint.',
    },
    legacyToken: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'A token of the legacy integration, accepted wherever a user token is.',
    },
    clientBasic: {
      type: 'http',
      scheme: 'basic',
      description: 'The client_id and client_secret of a client, each form-encoded (RFC 6749 section 2.3.1).',
    },
    webhookBasic: { type: 'http', scheme: 'basic', description: 'The credentials of the chain processor.' },
    clientSecret: { type: 'http', scheme: 'bearer', description: 'The secret of a client.' },
  } satisfies Record<string, oas31.SecuritySchemeObject>;
}

/**
 * Returns the OpenAPI parameters of a path from the schema that its handler parses them with; none without a schema.
 */
function pathParameters(path: Operation['pathParameters']): oas31.ParameterObject[] {
  return Object.entries(path?.shape ?? {}).map(([name, schema]) => ({
    name,
    in: 'path',
    required: true,
    schema: schemaOf(schema, 'input'),
  }));
}

/** Returns the OpenAPI parameter `X-Target-Server`, whose value is the name of one of these services. */
function targetServer(services: readonly string[]): oas31.ParameterObject {
  return {
    name: 'X-Target-Server',
    in: 'header',
    description:
      'The service that the request is for. If it is absent or empty, the gateway selects the service. Another name returns 404.',
    schema: { type: 'string', enum: [...services, ''] },
  };
}

/**
 * Returns the document as text for `schema/openapi.json`; the same configuration and routes always give the same text.
 */
export function printedOpenApi(config: GatewayConfig, described: DocumentedInterface): string {
  return withExactNumbers(`${JSON.stringify(openApiDocument(config, described), null, 2)}\n`);
}

/** Returns a schema in which every optional member, at any depth, may be null, which counts as absent. */
export function withNulls(schema: JsonSchema): JsonSchema {
  const { properties, required = [] } = schema;
  if (!properties) return schema;
  const members = Object.entries(properties).map(([name, member]) => {
    const own: JsonSchema = withNulls(member as JsonSchema);
    const isNullable = typeof own.type === 'string' && !required.includes(name);
    return [name, isNullable ? { ...own, type: [own.type, 'null'] } : own];
  });
  return { ...schema, properties: Object.fromEntries(members) };
}

/**
 * Returns the schemas with the descriptions of their members added.
 * @throws Error for a description of a schema or member that does not exist.
 */
export function described<Schemas extends Record<string, JsonSchema>>(
  schemas: Schemas,
  descriptions: Descriptions,
): Schemas {
  // Cloned together, so that schemas which share a member still share it.
  const copies = structuredClone(schemas);
  for (const [name, members] of Object.entries(descriptions)) {
    for (const [member, description] of Object.entries(members)) {
      const schema = copies[name]?.properties?.[member];
      if (!schema) throw new Error(`${name}.${member} is described but does not exist`);
      schema.description = description;
    }
  }
  return copies;
}

/** The largest uint64 as JSON writes it after rounding to a double, and exactly. */
const ROUNDED_UINT64 = String(Number(2n ** 64n - 1n));
const MAX_UINT64 = String(2n ** 64n - 1n);

/** Replaces the rounded largest uint64 in the text of a document by the exact number. */
export function withExactNumbers(text: string): string {
  return text.replaceAll(ROUNDED_UINT64, MAX_UINT64);
}
