import { z } from 'zod';
import { assetView } from '../../../domain/assets/assets.service.ts';
import { objectInput, uuidInput } from '../../../lib/input.ts';
import { instant, listPage, pageArguments, pageOutput, uuid } from '../kit/list-tools.ts';
import { defineTool } from '../kit/tool.ts';

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

export const assetTools = [
  defineTool({
    name: 'list_assets',
    title: 'List tokenized assets',
    description: "The node's tokenized assets, oldest first, with their contracts.",
    scope: 'tokens:read',
    input: objectInput(pageArguments),
    output: pageOutput(asset),
    run: (page, call) =>
      listPage(page, call, { tool: 'list_assets', list: ({ assets }) => assets, filter: {}, viewOf: assetView }),
  }),
  defineTool({
    name: 'get_asset',
    title: 'Get a tokenized asset',
    description: 'One tokenized asset by its id.',
    scope: 'tokens:read',
    input: objectInput({ asset_id: uuidInput().meta({ description: 'The id, from list_assets.' }) }),
    output: asset,
    missing: 'this node has no asset with that asset_id: take it from list_assets',
    run: ({ asset_id: id }, { caller, services }) => services.assets.view(caller.nodeId, id),
  }),
];
