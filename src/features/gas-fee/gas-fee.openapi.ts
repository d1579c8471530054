import { z } from 'zod';
import type { DocumentedSchemas } from '../../api/openapi/operation.ts';
import { instant, uuid } from '../../lib/fields.ts';

/** The schema of a whole number of the smallest unit of a currency, as decimal text. */
const wei = () => z.string().regex(/^[0-9]+$/);

/** What gas fees adds to the OpenAPI document. */
export const gasFeeSchemas: DocumentedSchemas = {
  outputs: {
    GasFees: z.strictObject({
      data: z.array(
        z.union([
          z.strictObject({
            network_id: uuid(),
            chain_id: z.union([z.int(), z.string()]),
            base_fee: wei().nullable(),
            priority_fee: z.strictObject({ slow: wei(), standard: wei(), fast: wei() }).nullable(),
            gas_price: wei(),
            block_number: z.union([z.int(), z.string()]),
            updated_at: instant(),
          }),
          z.strictObject({ network_id: uuid(), error: z.string() }),
        ]),
      ),
    }),
  },
};
