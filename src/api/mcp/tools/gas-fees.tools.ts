import { z } from 'zod';
import { gasFeeView } from '../../../domain/gas-fee/gas-fees.service.ts';
import { instant, uuid } from '../kit/list-tools.ts';
import { defineTool } from '../kit/tool.ts';

const wei = () => z.string();

const gasFee = z.strictObject({
  network_id: uuid(),
  chain_id: z.number().nullable().meta({ description: "The chain's number (EIP-155)." }),
  base_fee: wei().nullable().meta({ description: 'The base fee of the next block, in wei.' }),
  priority_fee: z.strictObject({ slow: wei(), standard: wei(), fast: wei() }).nullable().meta({
    description: 'Fees on top of the base fee, in wei: the 10th, 50th and 90th percentile of recent transactions.',
  }),
  gas_price: wei().nullable().meta({ description: 'base_fee and priority_fee.standard together, in wei.' }),
  block_number: z.number().nullable(),
  updated_at: instant().nullable(),
  error: z.literal('unavailable').nullable().meta({ description: 'The network does not respond: all else is null.' }),
});

const NOTHING = {
  chain_id: null,
  base_fee: null,
  priority_fee: null,
  gas_price: null,
  block_number: null,
  updated_at: null,
  error: null,
};

export const gasFeeTools = [
  defineTool({
    name: 'list_gas_fees',
    title: 'List gas fees',
    description:
      "The current price of gas on each configured network, in wei (1 gwei is 10^9 wei), at most a minute old. A transaction's fee is its gas times gas_price. list_networks has the networks' names.",
    input: z.object({}),
    output: z.strictObject({ data: z.array(gasFee) }),
    run: async (_input, { services }) => ({
      data: (await services.gasFees.list()).map((fee) => ({ ...NOTHING, ...gasFeeView(fee) })),
    }),
  }),
];
