import type { Builder } from '../graphql/builder.ts';
import { connectionOf, pageRequest } from '../graphql/pages.ts';
import type { Refs } from '../graphql/refs.ts';
import { isUuid } from '../lib/input.ts';
import { isoFromPg } from '../lib/pg-time.ts';

const CONNECTION = 'assets';

/** Adds the type of tokenized assets and the queries for them. */
export function addAssets(builder: Builder, refs: Refs): void {
  implementAsset(refs);
  const connection = builder.connectionObject(
    { type: refs.asset, name: 'AssetConnection', description: 'A page of tokenized assets.' },
    { name: 'AssetEdge', description: 'An asset and its place in the list.' },
  );
  builder.queryFields((t) => ({
    assets: t.field({
      type: connection,
      description: "The node's tokenized assets, oldest first. Needs tokens:read.",
      authScopes: { permission: 'tokens:read' },
      args: t.arg.connectionArgs(),
      resolve: async (_root, args, context) => {
        const { services, principal } = context;
        const request = pageRequest(args, context, CONNECTION);
        return connectionOf({
          page: await services.assets.page(principal.nodeId, request),
          request,
          connection: CONNECTION,
          context,
          keyOf: (row) => ({ at: row.created_at, id: row.id }),
          nodeOf: (row) => row,
          totalCount: () => services.assets.count(principal.nodeId),
        });
      },
    }),
    asset: t.field({
      type: refs.asset,
      nullable: true,
      description: 'One tokenized asset; null for an id that is unknown or of another node. Needs tokens:read.',
      authScopes: { permission: 'tokens:read' },
      args: { id: t.arg.id({ required: true, description: "The asset's UUID." }) },
      resolve: async (_root, { id }, { services, principal }) => {
        if (!isUuid(id)) return null;
        return (await services.assets.byIds(principal.nodeId, [id.toLowerCase()]))[0] ?? null;
      },
    }),
  }));
}

function implementAsset({ asset }: Refs): void {
  asset.implement({
    description: 'A tokenized asset.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID, the same as in REST.' }),
      name: t.exposeString('name', { description: 'As people call it.' }),
      symbol: t.exposeString('symbol', { description: "The token's symbol." }),
      type: t.exposeString('type', { description: 'Such as `bond`; others may come.' }),
      nodeId: t.exposeID('node_id', { description: 'The node that it belongs to.' }),
      networkId: t.exposeID('network_id', { description: 'The network that its contract is on.' }),
      contractAddress: t.exposeString('contract_address', {
        nullable: true,
        description: "The contract's address; null before it is tokenized.",
      }),
      status: t.exposeString('status', { description: 'Such as `draft`; others may come.' }),
      createdAt: t.field({
        type: 'DateTime',
        description: 'When it was created.',
        resolve: (row) => isoFromPg(row.created_at),
      }),
      updatedAt: t.field({
        type: 'DateTime',
        description: 'When it was last changed.',
        resolve: (row) => isoFromPg(row.updated_at),
      }),
    }),
  });
}
