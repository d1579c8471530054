import { z } from 'zod';
import { type DocumentedSchemas, headersOf, json } from '../../api/openapi/operation.ts';
import { route } from '../../api/rest/route.ts';
import { IDS } from '../../lib/example-ids.ts';
import { instant, uuid } from '../../lib/fields.ts';
import { type GasFees, gasFeeView } from './gas-fee.service.ts';

/** Returns the gas fees of every network in wei, as decimal text (docs/contract.md, 4.9-05). */
export const getGasFees = route({
  method: 'GET',
  path: '/v2/blockchain/gas-fee',
  operation: {
    operationId: 'getGasFees',
    tag: 'Blockchain',
    summary: 'Get the price of gas on each network, in wei',
    responses: {
      200: json(
        'A network whose RPC provider fails has only `error`, with the reason. `base_fee` is null on a chain without base fees, and `priority_fee` if the provider reports none.',
        'GasFees',
        {
          data: [
            {
              network_id: IDS.network_id,
              chain_id: 1,
              base_fee: '12000000000',
              priority_fee: { slow: '100000000', standard: '1000000000', fast: '2500000000' },
              gas_price: '13000000000',
              block_number: 21234567,
              updated_at: '2026-11-21T10:30:00.000Z',
            },
            { network_id: 'e1f2a3b4-5c6d-4e7f-8091-a2b3c4d5e6f7', error: 'unavailable: no response in time' },
          ],
        },
        headersOf(),
      ),
    },
  },
  handlers: ({ gasFees }: { gasFees: GasFees }) => [
    async (_req, res) => res.json({ data: (await gasFees.list()).map(gasFeeView) }),
  ],
});

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
