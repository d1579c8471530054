import { GRANT_TYPES } from '../../../access/administration/client.input.ts';
import { type ClientRow, DEFAULT_DURATION_SECONDS } from '../../../access/clients/clients.service.ts';
import { byCreation, type List } from '../../shared/lists.ts';
import type { Builder } from '../kit/builder.ts';
import type { GraphqlServices } from '../kit/graphql-context.ts';
import { connectionResolver, rowResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';
import { addClientMutations } from './client-mutations.graphql.ts';

/** The enums that clients and their inputs have. */
export type ClientEnums = ReturnType<typeof clientEnums>;

/** Adds the enums of clients; inside, their values are the names of the specification. */
function clientEnums(builder: Builder) {
  return {
    grantType: builder.enumType('GrantType', {
      description: 'A way to get a token (RFC 6749).',
      values: {
        PASSWORD: { value: 'password' as const, description: 'A supervisor logs in through the client.' },
        CLIENT_CREDENTIALS: { value: 'client_credentials' as const, description: 'The client speaks for itself.' },
        REFRESH_TOKEN: { value: 'refresh_token' as const, description: 'Another pair for one that it was issued.' },
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

/** Implements the type of clients, which never has a secret. */
function implementClient(builder: Builder, { client }: TypeRefs, { grantType, status }: ClientEnums): void {
  const tokenExpiry = builder.objectRef<ClientRow>('TokenExpiry').implement({
    description: 'How long the tokens of a client live.',
    fields: (t) => ({
      enabled: t.exposeBoolean('token_expiry_enabled', { description: 'Whether they end at all.' }),
      duration: t.int({
        description: 'Seconds from the issue of a token to its end; counts where `enabled`.',
        resolve: (row) => row.token_expiry_duration ?? DEFAULT_DURATION_SECONDS,
      }),
    }),
  });
  const rateLimit = builder.objectRef<ClientRow>('RateLimit').implement({
    description: 'How many requests a client may make, in windows aligned to the clock; null: any number.',
    fields: (t) => ({
      requestsPerSecond: t.exposeInt('requests_per_second', {
        nullable: true,
        description: 'Requests in a second; null: any number.',
      }),
      requestsPerMinute: t.exposeInt('requests_per_minute', {
        nullable: true,
        description: 'Requests in a minute; null: any number.',
      }),
      requestsPerHour: t.exposeInt('requests_per_hour', {
        nullable: true,
        description: 'Requests in an hour; null: any number.',
      }),
    }),
  });
  client.implement({
    description: 'A machine client (specification section 2.2). Its secret is told only where one is made.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'The `client_id`.' }),
      clientId: t.exposeID('id', { description: 'The `client_id`: the same as `id`.' }),
      name: t.exposeString('name', { description: 'As people call it.' }),
      nodeId: t.exposeID('node_id', { description: 'The node that it belongs to.' }),
      grantTypes: t.field({
        type: [grantType],
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
        description: 'The addresses and networks (CIDR) that it may call from; empty: any.',
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
        description: 'How many requests it may make; null: any number.',
        resolve: (row) => (hasRateLimit(row) ? row : null),
      }),
      monthlyLimit: t.exposeInt('monthly_limit', {
        nullable: true,
        description: 'How many requests it may make in a calendar month (UTC); null: any number.',
      }),
      refreshReuseDetection: t.exposeBoolean('refresh_reuse_detection', {
        description: 'Whether a refresh token is spent by its first use, and a later one ends all that came of it.',
      }),
      status: t.field({ type: status, description: 'Whether it can be used.', resolve: (row) => row.status }),
      lastUsedAt: t.expose('last_used_at', {
        type: 'DateTime',
        nullable: true,
        description: 'When it was last used, to within a few seconds; null: never.',
      }),
      createdAt: t.expose('created_at', { type: 'DateTime', description: 'When it was created.' }),
      updatedAt: t.expose('updated_at', { type: 'DateTime', description: 'When it was last changed.' }),
    }),
  });
}

function hasRateLimit({ requests_per_second, requests_per_minute, requests_per_hour }: ClientRow): boolean {
  return [requests_per_second, requests_per_minute, requests_per_hour].some((limit) => limit !== null);
}

const CLIENTS: List<object, ClientRow, GraphqlServices> = {
  of: ({ clientPages }) => clientPages,
  keyOf: byCreation,
};

/** Adds the type of clients, the queries for them and the mutations of them. */
export function addClients(builder: Builder, refs: TypeRefs): void {
  const enums = clientEnums(builder);
  implementClient(builder, refs, enums);
  addClientMutations(builder, refs, enums);
  const connection = builder.connectionObject(
    { type: refs.client, name: 'ClientConnection', description: 'A page of clients.' },
    { name: 'ClientEdge', description: 'A client and its place in the list.' },
  );
  builder.queryFields((t) => ({
    clients: t.field({
      type: connection,
      description: "The node's clients, active or not, oldest first. Needs clients:manage.",
      authScopes: { permission: 'clients:manage' },
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('clients', CLIENTS, () => ({})),
    }),
    client: t.field({
      type: refs.client,
      nullable: true,
      description: 'One client; null for an id that is unknown or of another node. Needs clients:manage.',
      authScopes: { permission: 'clients:manage' },
      args: { id: t.arg.id({ required: true, description: 'The `client_id`.' }) },
      resolve: rowResolver(({ clientPages }, nodeId, id) => clientPages.find(nodeId, id)),
    }),
  }));
}
