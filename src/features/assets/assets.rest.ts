import { z } from 'zod';
import { IDS } from '../../api/openapi/examples.ts';
import { json, responseOf } from '../../api/openapi/operation.ts';
import { route } from '../../api/rest/route.ts';
import { callerOf } from '../../gateway/exchange/exchange.ts';
import { uuidInput } from '../../lib/input.ts';
import { parsed } from '../../platform/errors.ts';
import type { Assets } from './assets.service.ts';

const assetPath = z.object({ id: uuidInput().meta({ example: IDS.asset_id }) });

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
      200: json('The asset.', 'Asset', {
        id: IDS.asset_id,
        name: 'Harbour Bond 2030',
        symbol: 'HB30',
        type: 'bond',
        node_id: IDS.node_id,
        network_id: IDS.network_id,
        contract_address: null,
        status: 'active',
        created_at: '2026-11-01T08:00:00.000Z',
        updated_at: '2026-11-20T16:45:30.250Z',
      }),
      404: responseOf('NotFound'),
    },
  },
  handlers: ({ assets }: { assets: Assets }) => [
    async (req, res) => {
      const { id } = parsed(assetPath, req.params);
      res.json(await assets.view(callerOf(req).nodeId, id));
    },
  ],
});
