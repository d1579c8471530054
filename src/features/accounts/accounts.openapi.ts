import { z } from 'zod';
import { type DocumentedSchemas, instant, uuid } from '../../api/openapi/schemas.ts';
import type { AccountRow } from './accounts.service.ts';

/** What accounts adds to the OpenAPI document. */
export const accountSchemas: DocumentedSchemas = {
  outputs: {
    AccountPage: z.strictObject({
      data: z.array(
        z.strictObject({
          id: uuid(),
          name: z.string(),
          node_id: uuid(),
          type: z.string(),
          status: z.int32(),
          created_at: instant(),
          updated_at: instant(),
          deleted_at: instant().nullable(),
        }) satisfies z.ZodType<AccountRow>,
      ),
      page: z.int().min(1),
      per_page: z.int().min(1).meta({ description: 'The requested limit.' }),
      total: z.int().min(0).meta({ description: 'The total number of items over all pages.' }),
    }),
  },
};
