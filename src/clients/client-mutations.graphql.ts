import { administrating } from '../graphql/administrating.ts';
import type { Builder } from '../graphql/builder.ts';
import { parsedInput } from '../graphql/camel-input.ts';
import { ForbiddenError, NotFoundError, ValidationError } from '../graphql/errors.ts';
import type { Refs } from '../graphql/refs.ts';
import { orMember } from '../graphql/refusals.ts';
import { clientInput, rotationInput } from './client.input.ts';
import type { ClientWithSecret } from './client-administration.service.ts';
import { clientInputType } from './client-input.graphql.ts';
import type { ClientEnums } from './client-type.graphql.ts';

const authScopes = { permission: 'clients:manage' } as const;
const errorTypes = [ValidationError, NotFoundError, ForbiddenError];
const idOptions = { required: true, description: 'The `client_id`.' } as const;

/** Adds the mutations of clients. */
export function addClientMutations(builder: Builder, refs: Refs, enums: ClientEnums): void {
  const input = clientInputType(builder, enums);
  const created = createdClientType(builder, refs);
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
        return orMember(context.services.clientAdministration.create(...administrating(context), client));
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
        return orMember(context.services.clientAdministration.replace(...administrating(context), args.id, client));
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
          context.services.clientAdministration.rotateSecret(...administrating(context), id, overlap_seconds),
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
        orMember(context.services.clientAdministration.setStatus(...administrating(context), id, status)),
    }),
  }));
}

function createdClientType(builder: Builder, refs: Refs) {
  return builder.objectRef<ClientWithSecret>('CreatedClient').implement({
    description: 'A client and a secret of its own.',
    fields: (t) => ({
      client: t.field({ type: refs.client, description: 'The client.', resolve: ({ client }) => client }),
      clientSecret: t.exposeString('secret', { description: 'The secret: told this once.' }),
    }),
  });
}
