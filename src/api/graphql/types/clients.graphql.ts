import { clientInput, GRANT_TYPES, rotationInput } from '../../../access/administration/client.input.ts';
import type { ClientWithSecret } from '../../../access/administration/client-administration.service.ts';
import { type ClientRow, DEFAULT_DURATION_SECONDS } from '../../../access/clients/clients.service.ts';
import { type Builder, needs } from '../kit/builder.ts';
import { parsedArgument } from '../kit/camel-input.ts';
import { tenantAndAdministrator } from '../kit/graphql-context.ts';
import { errorsOf, ForbiddenError, NotFoundError, orMember, ValidationError } from '../kit/graphql-errors.ts';
import { connectionResolver, rowResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/** The enums that clients and their inputs use. */
type ClientEnums = ReturnType<typeof clientEnums>;

/** Adds the enums of clients. Their internal values are the names of the specification. */
function clientEnums(builder: Builder) {
  return {
    grantType: builder.enumType('GrantType', {
      description: 'A way to get a token (RFC 6749).',
      values: {
        PASSWORD: { value: 'password' as const, description: 'A supervisor logs in through the client.' },
        CLIENT_CREDENTIALS: { value: 'client_credentials' as const, description: 'The client speaks for itself.' },
        REFRESH_TOKEN: { value: 'refresh_token' as const, description: 'Exchanges a refresh token for a new pair.' },
      },
    }),
    status: builder.enumType('ClientStatus', {
      description: 'Whether a client can be used.',
      values: {
        ACTIVE: { value: 'active' as const, description: 'It can get tokens.' },
        DISABLED: { value: 'disabled' as const, description: 'Its credentials and its tokens are refused.' },
      },
    }),
  };
}

function hasRateLimit({ requests_per_second, requests_per_minute, requests_per_hour }: ClientRow): boolean {
  return [requests_per_second, requests_per_minute, requests_per_hour].some((limit) => limit !== null);
}

/** Adds the type of clients, with its queries and mutations. */
export function addClients(builder: Builder, refs: TypeRefs): void {
  const enums = clientEnums(builder);
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
  const rateLimit = builder.objectRef<ClientRow>('RateLimit').implement({
    description: 'How many requests a client may make, in windows aligned to the clock; null means no limit.',
    fields: (t) => ({
      requestsPerSecond: t.exposeInt('requests_per_second', {
        nullable: true,
        description: 'Requests in a second; null means no limit.',
      }),
      requestsPerMinute: t.exposeInt('requests_per_minute', {
        nullable: true,
        description: 'Requests in a minute; null means no limit.',
      }),
      requestsPerHour: t.exposeInt('requests_per_hour', {
        nullable: true,
        description: 'Requests in an hour; null means no limit.',
      }),
    }),
  });
  refs.client.implement({
    description: 'A machine client (specification section 2.2). Its secret is returned only when it is created.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'The `client_id`.' }),
      clientId: t.exposeID('id', { description: 'The `client_id`: the same as `id`.' }),
      name: t.exposeString('name', { description: 'The display name.' }),
      nodeId: t.exposeID('node_id', { description: 'The node that it belongs to.' }),
      grantTypes: t.field({
        type: [enums.grantType],
        description: 'How it may get tokens.',
        resolve: (row) => GRANT_TYPES.filter((name) => row.grant_types.includes(name)),
      }),
      scopes: t.exposeStringList('scopes', { description: 'What its own tokens allow, such as `accounts:read`.' }),
      tokenExpiry: t.field({
        type: tokenExpiry,
        nullable: true,
        description: 'How long its own tokens live.',
        resolve: (row) => row,
      }),
      allowedIps: t.exposeStringList('allowed_ips', {
        description: 'The addresses and networks (CIDR) that it may call from; empty means any address.',
      }),
      requireCertificate: t.exposeBoolean('require_certificate', {
        description: 'Whether it must show a certificate.',
      }),
      certFingerprint: t.exposeString('cert_fingerprint', {
        nullable: true,
        description: 'The fingerprint of its certificate, in hexadecimal.',
      }),
      rateLimit: t.field({
        type: rateLimit,
        nullable: true,
        description: 'How many requests it may make; null means no limit.',
        resolve: (row) => (hasRateLimit(row) ? row : null),
      }),
      monthlyLimit: t.exposeInt('monthly_limit', {
        nullable: true,
        description: 'How many requests it may make in a calendar month (UTC); null means no limit.',
      }),
      refreshReuseDetection: t.exposeBoolean('refresh_reuse_detection', {
        description: 'Whether a refresh token works only once, and a second use revokes all tokens of its login.',
      }),
      status: t.field({
        type: enums.status,
        description: 'Whether the client can be used.',
        resolve: (row) => row.status,
      }),
      lastUsedAt: t.expose('last_used_at', {
        type: 'DateTime',
        nullable: true,
        description: 'When it was last used, to within a few seconds; null: never.',
      }),
      createdAt: t.expose('created_at', { type: 'DateTime', description: 'When it was created.' }),
      updatedAt: t.expose('updated_at', { type: 'DateTime', description: 'When it was last changed.' }),
    }),
  });
  addClientMutations(builder, refs, enums);
  const connection = builder.connectionObject(
    { type: refs.client, name: 'ClientConnection', description: 'A page of clients.' },
    { name: 'ClientEdge', description: 'A client and its cursor.' },
  );
  builder.queryFields((t) => ({
    clients: t.field({
      type: connection,
      ...needs('clients:manage', "The node's clients, active or not, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver(
        'clients',
        ({ clientPages }) => clientPages,
        () => ({}),
      ),
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
function clientInputType(builder: Builder, { grantType }: ClientEnums) {
  const tokenExpiry = builder.inputType('TokenExpiryInput', {
    description: 'How long the tokens of a client live.',
    fields: (t) => ({
      enabled: t.boolean({ required: true, description: 'Whether the tokens expire.' }),
      duration: t.int({
        required: true,
        description: 'Seconds from the issue of a token to its expiry, at least 1; used if `enabled`.',
      }),
    }),
  });
  const rateLimit = builder.inputType('RateLimitInput', {
    description: 'How many requests a client may make, in windows aligned to the clock; absent means no limit.',
    fields: (t) => ({
      requestsPerSecond: t.int({ description: 'Requests in a second, at least 1.' }),
      requestsPerMinute: t.int({ description: 'Requests in a minute, at least 1.' }),
      requestsPerHour: t.int({ description: 'Requests in an hour, at least 1.' }),
    }),
  });
  return builder.inputType('ClientInput', {
    description: 'A client. Absent members get their defaults.',
    fields: (t) => ({
      name: t.string({ required: true, description: 'The display name: 1 to 255 characters.' }),
      grantTypes: t.field({
        type: [grantType],
        required: true,
        description: 'How it may get tokens: at least one way.',
      }),
      scopes: t.stringList({
        required: true,
        description: 'What its own tokens allow: permissions such as `accounts:read`, which the caller must have.',
      }),
      tokenExpiry: t.field({
        type: tokenExpiry,
        description: 'How long its own tokens live: 3600 seconds by default.',
      }),
      allowedIps: t.stringList({
        description: 'The addresses and networks (CIDR) that it may call from; absent or empty means any address.',
      }),
      requireCertificate: t.boolean({ description: 'Whether it must show a certificate; false by default.' }),
      certFingerprint: t.string({
        description: 'The fingerprint of its certificate: hexadecimal, with or without colons.',
      }),
      rateLimit: t.field({ type: rateLimit, description: 'How many requests it may make; absent means no limit.' }),
      monthlyLimit: t.int({
        description: 'How many requests it may make in a calendar month (UTC), at least 1; absent means no limit.',
      }),
      refreshReuseDetection: t.boolean({
        description: 'Whether a refresh token works only once; false by default.',
      }),
    }),
  });
}

const authScopes = { permission: 'clients:manage' } as const;
const errorTypes = [ValidationError, NotFoundError, ForbiddenError];
const idOptions = { required: true, description: 'The `client_id`.' } as const;

/** Adds the mutations that administer clients. */
function addClientMutations(builder: Builder, refs: TypeRefs, enums: ClientEnums): void {
  const input = clientInputType(builder, enums);
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
        'CreateClientResult',
        errorTypes,
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
        'UpdateClientResult',
        errorTypes,
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
        'RotateClientSecretResult',
        errorTypes,
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
        'SetClientStatusResult',
        errorTypes,
        'The client; or NotFoundError: the client; ForbiddenError: without clients:manage, or a scope that the caller lacks; ValidationError: not returned.',
      ),
      args: {
        id: t.arg.id(idOptions),
        status: t.arg({ type: enums.status, required: true, description: 'The new status.' }),
      },
      resolve: (_root, { id, status }, context) =>
        orMember(context.services.clientAdministration.setStatus(...tenantAndAdministrator(context), id, status)),
    }),
  }));
}
