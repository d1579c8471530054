import type { GasPrices } from '../../../domain/gas-fee/fee-history.rules.ts';
import type { GasFee } from '../../../domain/gas-fee/gas-fees.service.ts';
import { type Builder, implement } from '../kit/builder.ts';

/** Adds the query `gasFees`, which returns the price of gas on each network. */
export function addGasFees(builder: Builder): void {
  const priorityFee = implement(
    builder.objectRef<GasPrices['priorityFee']>('PriorityFee'),
    'Priority fees that transactions of recent blocks paid on top of the base fee, in wei.',
    {
      slow: ['String', 'The 10th percentile, in wei.'],
      standard: ['String', 'The median, in wei.'],
      fast: ['String', 'The 90th percentile, in wei.'],
    },
  );
  const gasFee = builder.objectRef<GasFee>('GasFee').implement({
    description: 'The price of gas on a network, in wei. If it is unavailable, only `error` is set.',
    fields: (t) => ({
      networkId: t.exposeID('networkId', { description: 'The UUID of the network.' }),
      chainId: t.int({
        nullable: true,
        description: 'The chain id (EIP-155); null if it exceeds the range of Int.',
        resolve: (fee) => intOf(priced(fee)?.chainId),
      }),
      baseFee: t.string({
        nullable: true,
        description: 'The base fee of the next block, in wei: a decimal integer.',
        resolve: (fee) => priced(fee)?.baseFee,
      }),
      priorityFee: t.field({
        type: priorityFee,
        nullable: true,
        description: 'The priority fees; null if there is an `error`.',
        resolve: (fee) => priced(fee)?.priorityFee,
      }),
      gasPrice: t.string({
        nullable: true,
        description: 'The sum of the base fee and the standard priority fee, in wei: a decimal integer.',
        resolve: (fee) => priced(fee)?.gasPrice,
      }),
      blockNumber: t.int({
        nullable: true,
        description: 'The number of the latest block; null if it exceeds the range of Int.',
        resolve: (fee) => intOf(priced(fee)?.blockNumber),
      }),
      updatedAt: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When the price was fetched.',
        resolve: (fee) => {
          const found = priced(fee);
          return found && new Date(found.updatedAtMs).toISOString();
        },
      }),
      error: t.string({
        nullable: true,
        description: '`unavailable` if the RPC provider does not respond or returns an invalid response.',
        resolve: (fee) => ('error' in fee ? fee.error : null),
      }),
    }),
  });
  builder.queryField('gasFees', (t) =>
    t.field({
      type: [gasFee],
      description: 'The price of gas on each configured network, at most a minute old. Needs any token.',
      authScopes: { token: true },
      resolve: (_root, _args, { services }) => services.gasFees.list(),
    }),
  );
}

/** Returns a number if it fits GraphQL's 32-bit Int, and undefined otherwise. */
function intOf(value: number | undefined): number | undefined {
  return value !== undefined && value <= 2 ** 31 - 1 ? value : undefined;
}

function priced(fee: GasFee) {
  return 'error' in fee ? undefined : fee;
}
