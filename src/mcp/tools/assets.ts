import { z } from 'zod';
import type { AssetRow } from '../../assets/assets.service.ts';
import { objectInput, uuidInput } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/pg-time.ts';
import { instant, placeOf, uuid } from '../members.ts';
import { listPage, pageArguments, pageOutput } from '../pages.ts';
import { defineTool } from '../tool.ts';

const asset = z.strictObject({
  id: uuid(),
  name: z.string(),
  symbol: z.string(),
  type: z.string(),
  node_id: uuid(),
  network_id: uuid(),
  contract_address: z.string().nullable().meta({ description: 'null until the tokenization is done.' }),
  status: z.string(),
  created_at: instant(),
  updated_at: instant(),
});

const listAssets = defineTool({
  name: 'list_assets',
  title: 'List tokenized assets',
  description: "The node's tokenized assets, oldest first, with their contracts.",
  scope: 'tokens:read',
  input: objectInput(pageArguments),
  output: pageOutput(asset),
  run(page, call) {
    const { assets } = call.services;
    const { nodeId } = call.caller;
    return listPage(page, call, {
      list: 'list_assets',
      read: (request) => assets.page(nodeId, request),
      keyOf: placeOf,
      viewOf: assetView,
      count: () => assets.count(nodeId),
    });
  },
});

const getAsset = defineTool({
  name: 'get_asset',
  title: 'Get a tokenized asset',
  description: 'One tokenized asset by its id.',
  scope: 'tokens:read',
  input: objectInput({ asset_id: uuidInput().meta({ description: 'From list_assets.' }) }),
  output: asset,
  missing: 'this node has no asset with that asset_id: take it from list_assets',
  run: ({ asset_id: id }, { caller, services }) => services.assets.view(caller.nodeId, id),
});

function assetView({ created_at, updated_at, ...row }: AssetRow) {
  return { ...row, created_at: isoFromPg(created_at), updated_at: isoFromPg(updated_at) };
}

export const assetTools = [listAssets, getAsset];
