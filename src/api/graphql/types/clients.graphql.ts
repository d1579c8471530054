import { clientInput, GRANT_TYPES, rotationInput } from '../../../access/administration/client.input.ts';
import type { ClientWithSecret } from '../../../access/administration/client-administration.service.ts';
import { type ClientRow, DEFAULT_DURATION_SECONDS } from '../../../access/clients/clients.service.ts';
import { type Builder, connectionOf, implement, inputOf, needs } from '../kit/builder.ts';
import { parsedArgument } from '../kit/camel-input.ts';
import { tenantAndAdministrator } from '../kit/graphql-context.ts';
import { errorsOf, orMember } from '../kit/graphql-errors.ts';
import { connectionResolver, rowResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

function hasRateLimit({ requests_per_second, requests_per_minute, requests_per_hour }: ClientRow): boolean {
  return [requests_per_second, requests_per_minute, requests_per_hour].some((limit) => limit !== null);
}

/** Adds the type of clients, with its queries and mutations. */
export function addClients(builder: Builder, refs: TypeRefs): void {
  const tokenExpiry = builder.objectRef<ClientRow>('TokenExpiry').implement({
    description: 'How long the tokens of a client live.',
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
    'How many requests a client may make, in windows aligned to the clock; null means no limit.',
    {
      requests_per_second: ['Int?', 'Requests in a second; null means no limit.'],
      requests_per_minute: ['Int?', 'Requests in a minute; null means no limit.'],
      requests_per_hour: ['Int?', 'Requests in an hour; null means no limit.'],
    },
  );
  implement(
    refs.client,
    'A machine client (specification section 2.2). Its secret is returned only when it is created.',
    {
      id: ['ID', 'The `client_id`.'],
      name: ['String', 'The display name.'],
      node_id: ['ID', 'The node that it belongs to.'],
      scopes: ['[String]', 'What its own tokens allow, such as `accounts:read`.'],
      allowed_ips: ['[String]', 'The addresses and networks (CIDR) that it may call from; empty means any address.'],
      require_certificate: ['Boolean', 'Whether it must show a certificate.'],
      cert_fingerprint: ['String?', 'The fingerprint of its certificate, in hexadecimal.'],
      monthly_limit: ['Int?', 'How many requests it may make in a calendar month (UTC); null means no limit.'],
      refresh_reuse_detection: [
        'Boolean',
        'Whether a refresh token works only once, and a second use revokes all tokens of its login.',
      ],
      last_used_at: ['DateTime?', 'When it was last used, to within a few seconds; null: never.'],
      created_at: ['DateTime', 'When it was created.'],
      updated_at: ['DateTime', 'When it was last changed.'],
    },
  );
  builder.objectFields(refs.client, (t) => ({
    clientId: t.exposeID('id', { description: 'The `client_id`: the same as `id`.' }),
    grantTypes: t.field({
      type: [refs.grantType],
      description: 'How it may get tokens.',
      resolve: (row) => GRANT_TYPES.filter((name) => row.grant_types.includes(name)),
    }),
    tokenExpiry: t.field({
      type: tokenExpiry,
      nullable: true,
      description: 'How long its own tokens live.',
      resolve: (row) => row,
    }),
    rateLimit: t.field({
      type: rateLimit,
      nullable: true,
      description: 'How many requests it may make; null means no limit.',
      resolve: (row) => (hasRateLimit(row) ? row : null),
    }),
    status: t.field({
      type: refs.clientStatus,
      description: 'Whether the client can be used.',
      resolve: (row) => row.status,
    }),
  }));
  addClientMutations(builder, refs);
  const connection = connectionOf(builder, refs.client, 'A page of clients.', 'A client and its cursor.');
  builder.queryFields((t) => ({
    clients: t.field({
      type: connection,
      ...needs('clients:manage', "The node's clients, active or not, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('clients', ({ clientPages }) => clientPages),
    }),
    client: t.field({
      type: refs.client,
      nullable: true,
      ...needs('clients:manage', 'One client; null for an id that is unknown or of another node.'),
      args: { id: t.arg.id({ required: true, description: 'The `client_id`.' }) },
      resolve: rowResolver(({ clientPages }, nodeId, id) => clientPages.find(nodeId, id)),
    }),
  }));
}

/** Adds the input type of a client, with the REST members in camelCase. */
function clientInputType(builder: Builder, { grantType }: TypeRefs) {
  const tokenExpiry = inputOf(builder, 'TokenExpiryInput', 'How long the tokens of a client live.', {
    enabled: ['Boolean!', 'Whether the tokens expire.'],
    duration: ['Int!', 'Seconds from the issue of a token to its expiry, at least 1; used if `enabled`.'],
  });
  const rateLimit = inputOf(
    builder,
    'RateLimitInput',
    'How many requests a client may make, in windows aligned to the clock; absent means no limit.',
    {
      requestsPerSecond: ['Int', 'Requests in a second, at least 1.'],
      requestsPerMinute: ['Int', 'Requests in a minute, at least 1.'],
      requestsPerHour: ['Int', 'Requests in an hour, at least 1.'],
    },
  );
  return inputOf(builder, 'ClientInput', 'A client. Absent members get their defaults.', {
    name: ['String!', 'The display name: 1 to 255 characters.'],
    grantTypes: [[grantType], 'How it may get tokens: at least one way.', 'required'],
    scopes: [
      '[String]!',
      'What its own tokens allow: permissions such as `accounts:read`, which the caller must have.',
    ],
    tokenExpiry: [tokenExpiry, 'How long its own tokens live: 3600 seconds by default.'],
    allowedIps: [
      '[String]',
      'The addresses and networks (CIDR) that it may call from; absent or empty means any address.',
    ],
    requireCertificate: ['Boolean', 'Whether it must show a certificate; false by default.'],
    certFingerprint: ['String', 'The fingerprint of its certificate: hexadecimal, with or without colons.'],
    rateLimit: [rateLimit, 'How many requests it may make; absent means no limit.'],
    monthlyLimit: [
      'Int',
      'How many requests it may make in a calendar month (UTC), at least 1; absent means no limit.',
    ],
    refreshReuseDetection: ['Boolean', 'Whether a refresh token works only once; false by default.'],
  });
}

const authScopes = { permission: 'clients:manage' } as const;
const idOptions = { required: true, description: 'The `client_id`.' } as const;

/** Adds the mutations that administer clients. */
function addClientMutations(builder: Builder, refs: TypeRefs): void {
  const input = clientInputType(builder, refs);
  const created = builder.objectRef<ClientWithSecret>('CreatedClient').implement({
    description: 'A client and its new secret.',
    fields: (t) => ({
      client: t.field({ type: refs.client, description: 'The client.', resolve: ({ client }) => client }),
      clientSecret: t.exposeString('secret', { description: 'The secret, which is shown only once.' }),
    }),
  });
  builder.mutationFields((t) => ({
    createClient: t.field({
      type: created,
      description:
        "Creates an active client. Needs clients:manage and every scope that it gets; a client's own token creates none that is less restricted than the client (addresses, certificate, limits).",
      authScopes,
      errors: errorsOf(
        'The client with its secret; or ValidationError: a member of `input` is not valid; ForbiddenError: without clients:manage, a scope that the caller lacks, or less restricted than the client that creates it; NotFoundError: never returned today.',
      ),
      args: { input: t.arg({ ...parsedArgument(input, clientInput), description: 'The client.' }) },
      resolve: (_root, { input: client }, context) =>
        orMember(context.services.clientAdministration.create(...tenantAndAdministrator(context), client)),
    }),
    updateClient: t.field({
      type: refs.client,
      description:
        "Replaces a client in full; absent members get their defaults. Removing a scope, or switching token expiry on, revokes its existing tokens. Needs clients:manage and every scope that the client has or gets. A client's own token cannot make a client less restricted than itself.",
      authScopes,
      errors: errorsOf(
        'The client; or ValidationError: a member of `input` is not valid; NotFoundError: the client; ForbiddenError: without clients:manage, a scope that the caller lacks, or less restricted than the client that changes it.',
      ),
      args: {
        id: t.arg.id(idOptions),
        input: t.arg({ ...parsedArgument(input, clientInput), description: 'The whole new client.' }),
      },
      resolve: (_root, { id, input: client }, context) =>
        orMember(context.services.clientAdministration.replace(...tenantAndAdministrator(context), id, client)),
    }),
    rotateClientSecret: t.field({
      type: created,
      description:
        "Creates another secret. Needs clients:manage and every scope of the client; a client's own token cannot do it for a less restricted client.",
      authScopes,
      errors: errorsOf(
        'The client with its new secret; or ValidationError: `overlapSeconds` is out of range; NotFoundError: the client; ForbiddenError: without clients:manage, or a scope that the caller lacks; ValidationError: not returned.',
      ),
      args: {
        id: t.arg.id(idOptions),
        overlapSeconds: t.arg.int({
          description: 'How many seconds the old secret stays valid: 0, the default, to 2592000 (30 days).',
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
      type: refs.client,
      description:
        'Disabling ends its credentials, its tokens and the logins made through it, and needs clients:manage only. Enabling restores the credentials only, and needs what rotating its secret needs.',
      authScopes,
      errors: errorsOf(
        'The client; or NotFoundError: the client; ForbiddenError: without clients:manage, or a scope that the caller lacks; ValidationError: not returned.',
      ),
      args: {
        id: t.arg.id(idOptions),
        status: t.arg({ type: refs.clientStatus, required: true, description: 'The new status.' }),
      },
      resolve: (_root, { id, status }, context) =>
        orMember(context.services.clientAdministration.setStatus(...tenantAndAdministrator(context), id, status)),
    }),
  }));
}
