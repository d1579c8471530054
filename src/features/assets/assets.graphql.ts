import { type Builder, connectionOf, declaredColumns, implement, needs } from '../../api/graphql/kit/builder.ts';
import { connectionResolver, rowResolver } from '../../api/graphql/kit/resolvers.ts';
import { type AssetRow, asset } from './assets.service.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    Asset: AssetRow;
  }
}

/** Adds the type of tokenized assets and the queries for them. */
export function addAssets(builder: Builder): void {
  implement(builder.objectRef<AssetRow>('Asset'), 'A tokenized asset.', declaredColumns(asset));
  const connection = connectionOf(builder, 'Asset', 'A page of tokenized assets.', 'An asset and its cursor.');
  builder.queryFields((t) => ({
    assets: t.field({
      type: connection,
      ...needs('tokens:read', "The tenant's tokenized assets, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('assets', ({ assets }) => assets),
    }),
    asset: t.field({
      type: 'Asset',
      nullable: true,
      ...needs('tokens:read', 'One tokenized asset; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id({ required: true, description: "The asset's UUID." }) },
      resolve: rowResolver(async ({ assets }, nodeId, id) => (await assets.byIds(nodeId, [id]))[0]),
    }),
  }));
}
