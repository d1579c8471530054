import type { InputRef } from '@pothos/core';
import { type ClientRow, DEFAULT_DURATION_SECONDS } from '../../access/clients/clients.service.ts';
import {
  type Builder,
  connectionOf,
  enumOf,
  implement,
  inputOf,
  needs,
  parsedArgument,
} from '../../api/graphql/kit/builder.ts';
import {
  connectionResolver,
  errorsOf,
  loaderPerOperation,
  orMember,
  rowResolver,
  tenantAndAdministrator,
} from '../../api/graphql/kit/resolvers.ts';
import { clientInput, clientPatchInput, GRANT_TYPES, GRANTS, rotationInput } from './client.input.ts';
import type { ClientWithSecret } from './client-administration.service.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    Client: ClientRow;
  }
}

/** Adds the type of clients, with its queries and mutations. */
export function addClients(builder: Builder): void {
  const grantType = enumOf(builder, 'GrantType', 'A way to get a token (RFC 6749).', GRANTS);
  // Not cached, so that a rotation that follows another one returns the current expiry.
  const previousSecrets = loaderPerOperation<string | null>(
    (ids, { services, principal }) => services.clientAdministration.previousSecretExpiries(principal.nodeId, ids),
    { cache: false },
  );
  const status = enumOf(builder, 'ClientStatus', 'Whether a client can get and use tokens.', {
    active: 'It can get tokens.',
    disabled: 'Its credentials and tokens are rejected.',
  });
  const tokenExpiry = builder.objectRef<ClientRow>('TokenExpiry').implement({
    description: "The lifetime of a client's tokens.",
    fields: (t) => ({
      enabled: t.exposeBoolean('token_expiry_enabled', { description: 'Whether the tokens expire.' }),
      duration: t.int({
        description: 'Seconds from the issue of a token to its expiry; used if `enabled`.',
        resolve: (row) => row.token_expiry_duration ?? DEFAULT_DURATION_SECONDS,
      }),
    }),
  });
  const rateLimit = implement(
    builder.objectRef<ClientRow>('RateLimit'),
    'The maximum number of requests of a client, in windows aligned to the clock; null means no limit.',
    {
      requests_per_second: ['Int?', 'Requests per second; null means no limit.'],
      requests_per_minute: ['Int?', 'Requests per minute; null means no limit.'],
      requests_per_hour: ['Int?', 'Requests per hour; null means no limit.'],
    },
  );
  implement(
    builder.objectRef<ClientRow>('Client'),
    'A machine client. Its secret is returned only when it is created or rotated.',
    {
      id: ['ID', 'The `client_id`.'],
      name: ['String', 'The display name.'],
      node_id: ['ID', 'The tenant (node) that it belongs to.'],
      scopes: ['[String]', 'The permissions of its own tokens, such as `accounts:read`.'],
      allowed_ips: ['[String]', 'The IP addresses and CIDR ranges that it may call from; empty means any address.'],
      require_certificate: ['Boolean', 'Whether it must present a client certificate.'],
      status: [status, 'Whether the client can get and use tokens.'],
      cert_fingerprint: ['String?', 'The fingerprint of its client certificate, in hexadecimal.'],
      monthly_limit: ['Int?', 'Its quota of requests per calendar month (UTC); null means no limit.'],
      refresh_reuse_detection: [
        'Boolean',
        'Whether each refresh token works only once. A second use revokes all tokens of its family.',
      ],
      is_console: ['Boolean', 'Whether it is for signing in to the console only; then it has no secret.'],
      last_used_at: ['DateTime?', 'When it was last used, to within a few seconds; null if never.'],
      created_at: ['DateTime', 'When it was created.'],
      updated_at: ['DateTime', 'When it was last changed.'],
    },
    (t) => ({
      clientId: t.exposeID('id', { description: 'The `client_id` of OAuth; the same value as `id`.' }),
      grantTypes: t.field({
        type: [grantType],
        description: 'The grants that it may use.',
        resolve: (row) => GRANT_TYPES.filter((name) => row.grant_types.includes(name)),
      }),
      tokenExpiry: t.field({
        type: tokenExpiry,
        nullable: true,
        description: 'The lifetime of its own tokens.',
        resolve: (row) => row,
      }),
      rateLimit: t.field({
        type: rateLimit,
        nullable: true,
        description: 'Its rate limits; null means no limit.',
        resolve: (row) =>
          (row.requests_per_second ?? row.requests_per_minute ?? row.requests_per_hour) === null ? null : row,
      }),
      previousSecretExpiresAt: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When the previous secret stops working; null if there is none.',
        resolve: ({ id }, _args, context) => previousSecrets(context).load(id),
      }),
    }),
  );
  addClientMutations(builder, grantType, status);
  const connection = connectionOf(builder, 'Client', 'A page of clients.', 'A client and its cursor.');
  builder.queryFields((t) => ({
    clients: t.field({
      type: connection,
      ...needs('clients:manage', "The tenant's clients, active or not, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('clients', ({ clientPages }) => clientPages),
    }),
    client: t.field({
      type: 'Client',
      nullable: true,
      ...needs('clients:manage', 'One client; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id({ required: true, description: 'The `client_id`.' }) },
      resolve: rowResolver(({ clientPages }, nodeId, id) => clientPages.find(nodeId, id)),
    }),
  }));
}

/** Adds the input type of a client, with the REST members in camelCase. */
function clientInputType(builder: Builder, grantType: InputRef) {
  const tokenExpiry = inputOf(builder, 'TokenExpiryInput', "The lifetime of a client's tokens.", {
    enabled: ['Boolean!', 'Whether the tokens expire.'],
    duration: ['Int!', 'Seconds from the issue of a token to its expiry, at least 1; used if `enabled`.'],
  });
  const rateLimit = inputOf(
    builder,
    'RateLimitInput',
    'The maximum number of requests of a client, in windows aligned to the clock; absent means no limit.',
    {
      requestsPerSecond: ['Int', 'Requests per second, at least 1.'],
      requestsPerMinute: ['Int', 'Requests per minute, at least 1.'],
      requestsPerHour: ['Int', 'Requests per hour, at least 1.'],
    },
  );
  return inputOf(builder, 'ClientInput', 'A client. Absent members get their defaults.', {
    name: ['String!', 'The display name: 1 to 255 characters.'],
    grantTypes: [[grantType], 'The grants that it may use: at least one.', 'required'],
    scopes: [
      '[String]!',
      'The permissions of its own tokens, such as `accounts:read`. The caller must have each of them.',
    ],
    tokenExpiry: [tokenExpiry, 'The lifetime of its own tokens; 3600 seconds by default.'],
    allowedIps: [
      '[String]',
      'The IP addresses and CIDR ranges that it may call from; absent or empty means any address.',
    ],
    requireCertificate: ['Boolean', 'Whether it must present a client certificate; false by default.'],
    certFingerprint: [
      'String',
      'The SHA-1, SHA-256, SHA-384 or SHA-512 fingerprint of its client certificate: hexadecimal, with or without colons.',
    ],
    rateLimit: [rateLimit, 'Its rate limits; absent means no limit.'],
    monthlyLimit: ['Int', 'Its quota of requests per calendar month (UTC), at least 1; absent means no limit.'],
    refreshReuseDetection: ['Boolean', 'Whether each refresh token works only once; false by default.'],
    isConsole: [
      'Boolean',
      'Whether it is for signing in to the console only; false by default. Such a client has no secret and no limits, and the grants PASSWORD and REFRESH_TOKEN. It cannot be changed.',
    ],
  });
}

/** Adds the input type of changes to a client. */
function clientPatchType(builder: Builder, grantType: InputRef) {
  const tokenExpiry = inputOf(builder, 'TokenExpiryPatch', "Changes to the lifetime of a client's tokens.", {
    enabled: ['Boolean', 'Whether the tokens expire.'],
    duration: ['Int', 'Seconds from the issue of a token to its expiry, at least 1.'],
  });
  const rateLimit = inputOf(builder, 'RateLimitPatch', 'Changes to rate limits; 0 removes one.', {
    requestsPerSecond: ['Int', 'Requests per second.'],
    requestsPerMinute: ['Int', 'Requests per minute.'],
    requestsPerHour: ['Int', 'Requests per hour.'],
  });
  return inputOf(builder, 'ClientPatch', 'Changes to a client. Absent members stay, those of its members too.', {
    name: ['String', 'The display name: 1 to 255 characters.'],
    grantTypes: [[grantType], 'The grants that it may use: at least one.'],
    scopes: ['[String]', 'The permissions of its own tokens. The caller must have each of them.'],
    tokenExpiry: [tokenExpiry, 'The lifetime of its own tokens.'],
    allowedIps: ['[String]', 'The IP addresses and CIDR ranges that it may call from; empty means any address.'],
    requireCertificate: ['Boolean', 'Whether it must present a client certificate.'],
    certFingerprint: ['String', 'The fingerprint of its client certificate; empty removes it.'],
    rateLimit: [rateLimit, 'Its rate limits.'],
    monthlyLimit: ['Int', 'Its quota of requests per calendar month (UTC); 0 removes it.'],
    refreshReuseDetection: ['Boolean', 'Whether each refresh token works only once.'],
  });
}

const authScopes = { permission: 'clients:manage' } as const;
const idOptions = { required: true, description: 'The `client_id`.' } as const;

/** Adds the mutations that administer clients. */
function addClientMutations(builder: Builder, grantType: InputRef, status: InputRef<ClientRow['status']>): void {
  const input = clientInputType(builder, grantType);
  const created = builder.objectRef<ClientWithSecret>('CreatedClient').implement({
    description: 'A client and its new secret.',
    fields: (t) => ({
      client: t.field({ type: 'Client', description: 'The client.', resolve: ({ client }) => client }),
      clientSecret: t.exposeString('secret', {
        description: 'The secret, which is shown only once; empty for a console client, which has none.',
      }),
    }),
  });
  builder.mutationFields((t) => ({
    createClient: t.field({
      type: created,
      description:
        'Creates an active client. Needs clients:manage and every scope that the new client gets. An API token cannot create a client with fewer restrictions (addresses, certificate, limits) than the client it was issued to.',
      authScopes,
      errors: errorsOf(
        'The client with its secret; or ValidationError: a member of `input` is invalid; ForbiddenError: the caller lacks clients:manage or a scope of the new client, or the new client would have fewer restrictions than the caller; NotFoundError: reserved for later versions.',
      ),
      args: { input: t.arg({ ...parsedArgument(input, clientInput), description: 'The client.' }) },
      resolve: (_root, { input: client }, context) =>
        orMember(context.services.clientAdministration.create(...tenantAndAdministrator(context), client)),
    }),
    updateClient: t.field({
      type: 'Client',
      description:
        'Replaces a client in full; absent members get their defaults. Removing a scope or enabling token expiry revokes its existing tokens. Needs clients:manage and every scope that the client has or gets. An API token cannot give a client fewer restrictions than the client it was issued to.',
      authScopes,
      errors: errorsOf(
        'The client; or ValidationError: a member of `input` is invalid; NotFoundError: there is no such client; ForbiddenError: the caller lacks clients:manage or a scope of the client, or the client would have fewer restrictions than the caller.',
      ),
      args: {
        id: t.arg.id(idOptions),
        input: t.arg({ ...parsedArgument(input, clientInput), description: 'The whole new client.' }),
      },
      resolve: (_root, { id, input: client }, context) =>
        orMember(context.services.clientAdministration.replace(...tenantAndAdministrator(context), id, client)),
    }),
    patchClient: t.field({
      type: 'Client',
      description:
        'Changes the given members of a client; absent ones stay. Removing a scope or enabling token expiry revokes its existing tokens. Needs clients:manage and every scope that the client has or gets. An API token cannot give a client fewer restrictions than the client it was issued to.',
      authScopes,
      errors: errorsOf(
        'The client; or ValidationError: a member of `input` is invalid; NotFoundError: there is no such client; ForbiddenError: the caller lacks clients:manage or a scope of the client, or the client would have fewer restrictions than the caller.',
      ),
      args: {
        id: t.arg.id(idOptions),
        input: t.arg({
          ...parsedArgument(clientPatchType(builder, grantType), clientPatchInput),
          description: 'The members to change.',
        }),
      },
      resolve: (_root, { id, input: patch }, context) =>
        orMember(context.services.clientAdministration.patch(...tenantAndAdministrator(context), id, patch)),
    }),
    rotateClientSecret: t.field({
      type: created,
      description:
        'Creates another secret. Needs clients:manage and every scope of the client. An API token cannot do this for a client with fewer restrictions than the client it was issued to.',
      authScopes,
      errors: errorsOf(
        'The client with its new secret; or ValidationError: `overlapSeconds` is out of range; NotFoundError: there is no such client; ForbiddenError: the caller lacks clients:manage or a scope of the client, or the client has fewer restrictions than the caller.',
      ),
      args: {
        id: t.arg.id(idOptions),
        overlapSeconds: t.arg.int({
          description: 'Seconds the old secret stays valid: 0 to 2592000 (30 days); default 0.',
          validate: { schema: rotationInput.out.shape.overlap_seconds },
        }),
      },
      resolve: (_root, { id, overlapSeconds }, context) =>
        orMember(
          context.services.clientAdministration.rotateSecret(
            ...tenantAndAdministrator(context),
            id,
            overlapSeconds ?? 0,
          ),
        ),
    }),
    setClientStatus: t.field({
      type: 'Client',
      description:
        'Enables or disables a client. Disabling revokes its tokens and the sessions created through it, and needs clients:manage only. Enabling makes its credentials work again, and needs the same permissions as rotating its secret.',
      authScopes,
      errors: errorsOf(
        'The client; or NotFoundError: there is no such client; ForbiddenError: the caller lacks clients:manage or, to enable it, a scope of the client; ValidationError: reserved for later versions.',
      ),
      args: {
        id: t.arg.id(idOptions),
        status: t.arg({ type: status, required: true, description: 'The new status.' }),
      },
      resolve: (_root, args, context) =>
        orMember(
          context.services.clientAdministration.setStatus(...tenantAndAdministrator(context), args.id, args.status),
        ),
    }),
  }));
}
