import { assetPath } from '../../assets/assets.rest.ts';
import { NETWORK_ID, NODE_ID } from '../examples.ts';
import { limitedHeadersOf } from '../headers.ts';
import type { Operations } from '../operation.ts';
import { pageParameters, pathParameters } from '../parameters.ts';
import { json, responseOf } from '../responses.ts';

const times = { created_at: '2026-11-01T08:00:00.000Z', updated_at: '2026-11-20T16:45:30.250Z' };

export const listOperations: Operations = {
  'GET /v1/accounts': {
    operationId: 'listAccounts',
    tag: 'Accounts',
    summary: 'List accounts, oldest first',
    description: 'A page past the end is empty. Parameters that are not named here are ignored.',
    parameters: [
      ...pageParameters(),
      {
        name: 'include_deleted',
        in: 'query',
        description: '`true` lists deleted accounts too; any other text does not.',
        schema: { type: 'string' },
        example: 'true',
      },
    ],
    responses: {
      200: json(
        'A page of accounts, with the exact total over all pages.',
        'AccountPage',
        {
          data: [
            {
              id: 'a7b0c9d8-1e2f-4a3b-8c5d-6e7f8a9b0c1d',
              name: 'Treasury',
              node_id: NODE_ID,
              type: 'organisation',
              status: 1,
              ...times,
              deleted_at: null,
            },
          ],
          page: 1,
          per_page: 10,
          total: 1,
        },
        limitedHeadersOf(),
      ),
    },
  },
  'GET /v2/admin/tokens/{id}': {
    operationId: 'getAsset',
    tag: 'Assets',
    summary: 'Show a tokenized asset',
    parameters: pathParameters(assetPath),
    responses: {
      200: json(
        'The asset.',
        'Asset',
        {
          id: '3c5e7a91-b2d4-4f68-9a0c-1e3d5b7f9a2c',
          name: 'Harbour Bond 2030',
          symbol: 'HB30',
          type: 'bond',
          node_id: NODE_ID,
          network_id: NETWORK_ID,
          contract_address: null,
          status: 'active',
          ...times,
        },
        limitedHeadersOf(),
      ),
      404: responseOf('NotFound'),
    },
  },
};
