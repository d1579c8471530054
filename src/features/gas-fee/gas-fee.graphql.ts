import { type Builder, implement } from '../../api/graphql/kit/builder.ts';
import type { GasPrices } from './fee-history.rules.ts';
import { gasFeeView } from './gas-fee.service.ts';

type Views = ReturnType<typeof gasFeeView>;

/** Adds the query `gasFees`, which returns the price of gas on each network. */
export function addGasFees(builder: Builder): void {
  const priorityFee = implement(
    builder.objectRef<NonNullable<GasPrices['priorityFee']>>('PriorityFee'),
    'Priority fees that transactions of recent blocks paid on top of the base fee, in wei.',
    {
      slow: ['String', 'The 10th percentile, in wei.'],
      standard: ['String', 'The median, in wei.'],
      fast: ['String', 'The 90th percentile, in wei.'],
    },
  );
  const gasFee = implement(
    // A gas fee of either form, so that a member may be absent.
    builder.objectRef<Pick<Views, keyof Views>>('GasFee'),
    'The price of gas on a network, in wei. If it is unavailable, only `error` is set.',
    {
      network_id: ['ID', 'The UUID of the network.'],
      base_fee: ['String?', 'The base fee of the next block, in wei: a decimal integer; null if the chain has none.'],
      priority_fee: [
        priorityFee,
        'The priority fees; null if the RPC provider reports none, or if there is an `error`.',
        'nullable',
      ],
      gas_price: [
        'String?',
        'The sum of the base fee and the standard priority fee, or the price that the network names if it has no base fee, in wei: a decimal integer.',
      ],
      updated_at: ['DateTime?', 'When the price was fetched.'],
      error: [
        'String?',
        '`unavailable` and the reason if the RPC provider does not respond or returns an invalid response.',
      ],
    },
    (t) => ({
      chainId: t.int({
        nullable: true,
        description: 'The chain id (EIP-155); null if it exceeds the range of Int.',
        resolve: (fee) => intOf(fee.chain_id),
      }),
      blockNumber: t.int({
        nullable: true,
        description: 'The number of the latest block; null if it exceeds the range of Int.',
        resolve: (fee) => intOf(fee.block_number),
      }),
    }),
  );
  builder.queryField('gasFees', (t) =>
    t.field({
      type: [gasFee],
      description: 'The price of gas on each configured network, at most a minute old. Needs any token.',
      authScopes: { token: true },
      resolve: async (_root, _args, { services }) => (await services.gasFees.list()).map(gasFeeView),
    }),
  );
}

/** Returns a number if it fits GraphQL's 32-bit Int, and undefined otherwise. */
function intOf(value: number | undefined): number | undefined {
  return value !== undefined && value <= 2 ** 31 - 1 ? value : undefined;
}
