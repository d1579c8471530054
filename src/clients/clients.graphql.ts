import type { Builder } from '../graphql/builder.ts';
import { connectionOf, pageRequest } from '../graphql/pages.ts';
import type { Refs } from '../graphql/refs.ts';
import { isUuid } from '../lib/input.ts';
import { addClientMutations } from './client-mutations.graphql.ts';
import { clientEnums, implementClient } from './client-type.graphql.ts';

const CONNECTION = 'clients';

/** Adds the type of clients, the queries for them and the mutations of them. */
export function addClients(builder: Builder, refs: Refs): void {
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
      resolve: async (_root, args, context) => {
        const { services, principal } = context;
        const request = pageRequest(args, context, CONNECTION);
        return connectionOf({
          page: await services.clientPages.page(principal.nodeId, request),
          request,
          connection: CONNECTION,
          context,
          keyOf: (row) => ({ at: row.created_at, id: row.id }),
          nodeOf: (row) => row,
          totalCount: () => services.clientPages.count(principal.nodeId),
        });
      },
    }),
    client: t.field({
      type: refs.client,
      nullable: true,
      description: 'One client; null for an id that is unknown or of another node. Needs clients:manage.',
      authScopes: { permission: 'clients:manage' },
      args: { id: t.arg.id({ required: true, description: 'The `client_id`.' }) },
      resolve: async (_root, { id }, { services, principal }) => {
        if (!isUuid(id)) return null;
        return (await services.clientPages.find(principal.nodeId, id.toLowerCase())) ?? null;
      },
    }),
  }));
}
