import type { GasPrices } from '../../../domain/gas-fee/fee-history.rules.ts';
import type { GasFee } from '../../../domain/gas-fee/gas-fees.service.ts';
import { type Builder, implement } from '../kit/builder.ts';

/** Adds the query `gasFees`, which returns the price of gas on each network. */
export function addGasFees(builder: Builder): void {
  const priorityFee = implement(
    builder.objectRef<GasPrices['priorityFee']>('PriorityFee'),
    'What transactions of recent blocks paid on top of the base fee, in wei.',
    {
      slow: ['String', 'In wei: more than a tenth of them paid.'],
      standard: ['String', 'In wei: more than half of them paid.'],
      fast: ['String', 'In wei: more than nine tenths of them paid.'],
    },
  );
  const gasFee = builder.objectRef<GasFee>('GasFee').implement({
    description: 'The price of gas on a network, in wei. If it is unavailable, only `error` is given.',
    fields: (t) => ({
      networkId: t.exposeID('networkId', { description: 'The UUID of the network.' }),
      chainId: t.int({
        nullable: true,
        description: "The chain's number (EIP-155); null where it is no Int.",
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
        description: 'The fees on top of the base fee; null if there is an `error`.',
        resolve: (fee) => priced(fee)?.priorityFee,
      }),
      gasPrice: t.string({
        nullable: true,
        description: 'The base fee and the standard priority fee together, in wei: a decimal integer.',
        resolve: (fee) => priced(fee)?.gasPrice,
      }),
      blockNumber: t.int({
        nullable: true,
        description: 'The latest block that is known; null where it is no Int.',
        resolve: (fee) => intOf(priced(fee)?.blockNumber),
      }),
      updatedAt: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When the network was asked.',
        resolve: (fee) => {
          const found = priced(fee);
          return found && new Date(found.updatedAtMs).toISOString();
        },
      }),
      error: t.string({
        nullable: true,
        description: '`unavailable` where the network does not answer, or not as it should.',
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
