import { type Builder, needs } from '../kit/builder.ts';
import { connectionResolver, rowResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/** Adds the type of tokenized assets and the queries for them. */
export function addAssets(builder: Builder, refs: TypeRefs): void {
  refs.asset.implement({
    description: 'A tokenized asset.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID, the same as in REST.' }),
      name: t.exposeString('name', { description: 'The display name.' }),
      symbol: t.exposeString('symbol', { description: "The token's symbol." }),
      type: t.exposeString('type', { description: 'Such as `bond`; others may come.' }),
      nodeId: t.exposeID('node_id', { description: 'The node that it belongs to.' }),
      networkId: t.exposeID('network_id', { description: 'The network that its contract is on.' }),
      contractAddress: t.exposeString('contract_address', {
        nullable: true,
        description: "The contract's address; null before it is tokenized.",
      }),
      status: t.exposeString('status', { description: 'Such as `draft`; others may come.' }),
      createdAt: t.expose('created_at', { type: 'DateTime', description: 'When it was created.' }),
      updatedAt: t.expose('updated_at', { type: 'DateTime', description: 'When it was last changed.' }),
    }),
  });
  const connection = builder.connectionObject(
    { type: refs.asset, name: 'AssetConnection', description: 'A page of tokenized assets.' },
    { name: 'AssetEdge', description: 'An asset and its cursor.' },
  );
  builder.queryFields((t) => ({
    assets: t.field({
      type: connection,
      ...needs('tokens:read', "The node's tokenized assets, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver(
        'assets',
        ({ assets }) => assets,
        () => ({}),
      ),
    }),
    asset: t.field({
      type: refs.asset,
      nullable: true,
      ...needs('tokens:read', 'One tokenized asset; null for an id that is unknown or of another node.'),
      args: { id: t.arg.id({ required: true, description: "The asset's UUID." }) },
      resolve: rowResolver(async ({ assets }, nodeId, id) => (await assets.byIds(nodeId, [id]))[0]),
    }),
  }));
}
