import { z } from 'zod';
import { defineTool } from '../../api/mcp/kit/tool.ts';
import { instant, uuid } from '../../lib/fields.ts';
import { gasFeeView } from './gas-fee.service.ts';

const wei = () => z.string();

const gasFee = z.strictObject({
  network_id: uuid(),
  chain_id: z.number().nullable().meta({ description: "The chain's number (EIP-155)." }),
  base_fee: wei().nullable().meta({ description: 'The base fee of the next block; null if the chain has none.' }),
  priority_fee: z.strictObject({ slow: wei(), standard: wei(), fast: wei() }).nullable().meta({
    description:
      'In addition to the base fee: the 10th, 50th and 90th percentile of recent transactions; null if unknown.',
  }),
  gas_price: wei()
    .nullable()
    .meta({ description: 'base_fee plus priority_fee.standard; the price of the network if it has no base fee.' }),
  block_number: z.number().nullable(),
  updated_at: instant().nullable(),
  error: z.string().nullable().meta({ description: 'Why the price is unavailable; all other members are null.' }),
});

const NO_FEE = {
  ...{ chain_id: null, base_fee: null, priority_fee: null, gas_price: null },
  ...{ block_number: null, updated_at: null, error: null },
};

export const gasFeeTools = [
  defineTool({
    name: 'list_gas_fees',
    title: 'List gas fees',
    description:
      'Returns the price of gas on each configured network, in wei (1 gwei is 10^9 wei), at most a minute old. The fee of a transaction is its gas multiplied by gas_price.',
    input: z.object({}),
    output: z.strictObject({ data: z.array(gasFee) }),
    run: async (_input, { services }) => ({
      data: (await services.gasFees.list()).map((fee) => ({ ...NO_FEE, ...gasFeeView(fee) })),
    }),
  }),
];
