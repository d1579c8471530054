import { z } from 'zod';
import { type DocumentedSchemas, instant, uuid } from '../../api/openapi/schemas.ts';
import type { AssetRow } from './assets.service.ts';

/** What assets adds to the OpenAPI document. */
export const assetSchemas: DocumentedSchemas = {
  outputs: {
    Asset: z.strictObject({
      id: uuid(),
      name: z.string(),
      symbol: z.string(),
      type: z.string(),
      node_id: uuid(),
      network_id: uuid(),
      contract_address: z.string().nullable(),
      status: z.string(),
      created_at: instant(),
      updated_at: instant(),
    }) satisfies z.ZodType<AssetRow>,
  },
};
