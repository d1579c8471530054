import { clientInput, rotationInput } from '../../../access/administration/client.input.ts';
import type { ClientWithSecret } from '../../../access/administration/client-administration.service.ts';
import type { Builder } from '../kit/builder.ts';
import { parsedInput } from '../kit/camel-input.ts';
import { tenantAndAdministrator } from '../kit/graphql-context.ts';
import { ForbiddenError, NotFoundError, orMember, ValidationError } from '../kit/graphql-errors.ts';
import type { TypeRefs } from '../kit/type-refs.ts';
import type { ClientEnums } from './clients.graphql.ts';

/** The input of a client, with the members of REST in camelCase. */
function clientInputType(builder: Builder, { grantType }: ClientEnums) {
  const tokenExpiry = builder.inputType('TokenExpiryInput', {
    description: 'How long the tokens of a client live.',
    fields: (t) => ({
      enabled: t.boolean({ required: true, description: 'Whether they end at all.' }),
      duration: t.int({
        required: true,
        description: 'Seconds from the issue of a token to its end, at least 1; counts where `enabled`.',
      }),
    }),
  });
  const rateLimit = builder.inputType('RateLimitInput', {
    description: 'How many requests a client may make, in windows aligned to the clock; absent: any number.',
    fields: (t) => ({
      requestsPerSecond: t.int({ description: 'Requests in a second, at least 1.' }),
      requestsPerMinute: t.int({ description: 'Requests in a minute, at least 1.' }),
      requestsPerHour: t.int({ description: 'Requests in an hour, at least 1.' }),
    }),
  });
  return builder.inputType('ClientInput', {
    description: 'A client; what is absent takes its default.',
    fields: (t) => ({
      name: t.string({ required: true, description: 'As people call it: 1 to 255 characters.' }),
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
        description: 'The addresses and networks (CIDR) that it may call from; absent or empty: any.',
      }),
      requireCertificate: t.boolean({ description: 'Whether it must show a certificate; false by default.' }),
      certFingerprint: t.string({
        description: 'The fingerprint of its certificate: hexadecimal, with or without colons.',
      }),
      rateLimit: t.field({ type: rateLimit, description: 'How many requests it may make; absent: any number.' }),
      monthlyLimit: t.int({
        description: 'How many requests it may make in a calendar month (UTC), at least 1; absent: any number.',
      }),
      refreshReuseDetection: t.boolean({
        description: 'Whether a refresh token is spent by its first use; false by default.',
      }),
    }),
  });
}

const authScopes = { permission: 'clients:manage' } as const;
const errorTypes = [ValidationError, NotFoundError, ForbiddenError];
const idOptions = { required: true, description: 'The `client_id`.' } as const;

/** Adds the mutations of clients. */
export function addClientMutations(builder: Builder, refs: TypeRefs, enums: ClientEnums): void {
  const input = clientInputType(builder, enums);
  const created = builder.objectRef<ClientWithSecret>('CreatedClient').implement({
    description: 'A client and a secret of its own.',
    fields: (t) => ({
      client: t.field({ type: refs.client, description: 'The client.', resolve: ({ client }) => client }),
      clientSecret: t.exposeString('secret', { description: 'The secret: told this once.' }),
    }),
  });
  const errorsOf = (name: string, description: string) => ({ types: errorTypes, union: { name, description } });
  builder.mutationFields((t) => ({
    createClient: t.field({
      type: created,
      description:
        "Creates an active client. Needs clients:manage and every scope that it gets; a client's own token makes none that is freer than the client (addresses, certificate, limits).",
      authScopes,
      errors: errorsOf(
        'CreateClientResult',
        'The client with its secret; or ValidationError: a member of `input` is not valid; ForbiddenError: without clients:manage, a scope that the caller has not, or freer than the client that makes it; NotFoundError: not at present.',
      ),
      args: { input: t.arg({ type: input, required: true, description: 'The client.' }) },
      resolve: (_root, args, context) => {
        const client = parsedInput(clientInput, args.input);
        return orMember(context.services.clientAdministration.create(...tenantAndAdministrator(context), client));
      },
    }),
    updateClient: t.field({
      type: refs.client,
      description:
        "Replaces a client in full: what is absent takes its default. Taking a scope away, or switching token expiry on, ends its own tokens so far. Needs clients:manage and every scope that it has or gets; a client's own token makes none freer than the client.",
      authScopes,
      errors: errorsOf(
        'UpdateClientResult',
        'The client; or ValidationError: a member of `input` is not valid; NotFoundError: the client; ForbiddenError: without clients:manage, a scope that the caller has not, or freer than the client that changes it.',
      ),
      args: {
        id: t.arg.id(idOptions),
        input: t.arg({ type: input, required: true, description: 'The client as it shall be.' }),
      },
      resolve: (_root, args, context) => {
        const client = parsedInput(clientInput, args.input);
        return orMember(
          context.services.clientAdministration.replace(...tenantAndAdministrator(context), args.id, client),
        );
      },
    }),
    rotateClientSecret: t.field({
      type: created,
      description:
        "Makes another secret. Needs clients:manage and every scope that the client has; a client's own token makes none for a freer client.",
      authScopes,
      errors: errorsOf(
        'RotateClientSecretResult',
        'The client with its new secret; or ValidationError: `overlapSeconds` is out of range; NotFoundError: the client; ForbiddenError: without clients:manage, or a scope that the caller has not.',
      ),
      args: {
        id: t.arg.id(idOptions),
        overlapSeconds: t.arg.int({
          description: 'For how long the secret so far stays good beside it: 0, the default, to 2592000 (30 days).',
        }),
      },
      resolve: (_root, { id, overlapSeconds }, context) => {
        const { overlap_seconds } = parsedInput(rotationInput, { overlapSeconds });
        return orMember(
          context.services.clientAdministration.rotateSecret(...tenantAndAdministrator(context), id, overlap_seconds),
        );
      },
    }),
    setClientStatus: t.field({
      type: refs.client,
      description:
        'Disabling ends its credentials, its tokens and the logins made through it, and needs clients:manage alone. Enabling brings back the credentials alone, and needs what rotating its secret needs.',
      authScopes,
      errors: errorsOf(
        'SetClientStatusResult',
        'The client; or NotFoundError: the client; ForbiddenError: without clients:manage, or a scope that the caller has not; ValidationError: not at present.',
      ),
      args: {
        id: t.arg.id(idOptions),
        status: t.arg({ type: enums.status, required: true, description: 'The status that it gets.' }),
      },
      resolve: (_root, { id, status }, context) =>
        orMember(context.services.clientAdministration.setStatus(...tenantAndAdministrator(context), id, status)),
    }),
  }));
}
