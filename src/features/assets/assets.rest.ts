import { z } from 'zod';
import { type DocumentedSchemas, json, responseOf } from '../../api/openapi/operation.ts';
import { route } from '../../api/rest/route.ts';
import { callerOf } from '../../gateway/exchange/exchange.ts';
import { IDS } from '../../lib/example-ids.ts';
import { exampleOf } from '../../lib/fields.ts';
import { uuidInput } from '../../lib/input.ts';
import { parseOrReject } from '../../platform/errors.ts';
import { type Assets, asset } from './assets.service.ts';

const assetPath = z.object({ id: uuidInput().meta({ example: IDS.asset_id }) });

/** What assets add to the OpenAPI document. */
export const assetSchemas: DocumentedSchemas = { outputs: { Asset: asset } };

/** Returns a tokenized asset of the caller's tenant (docs/contract.md, 4.9-01). */
export const getAsset = route({
  method: 'GET',
  path: '/v2/admin/tokens/{id}',
  operation: {
    operationId: 'getAsset',
    tag: 'Assets',
    summary: 'Get a tokenized asset',
    pathParameters: assetPath,
    responses: {
      200: json('The asset.', 'Asset', exampleOf(asset)),
      404: responseOf('NotFound'),
    },
  },
  handlers: ({ assets }: { assets: Assets }) => [
    async (req, res) => {
      const { id } = parseOrReject(assetPath, req.params);
      res.json(await assets.view(callerOf(req).nodeId, id));
    },
  ],
});
