import { z } from 'zod';

/** The gas prices of one network, in wei as decimal text (docs/contract.md, D8-03). */
export interface GasPrices {
  chainId: number;
  /** The base fee of the next block, in wei. */
  baseFee: string;
  /**
   * The fee paid on top of the base fee in recent blocks, in wei: by the 10th (`slow`), 50th (`standard`) and 90th
   * (`fast`) percentile of transactions.
   */
  priorityFee: { slow: string; standard: string; fast: string };
  /** The sum of `baseFee` and the standard priority fee, in wei. */
  gasPrice: string;
  /** The number of the latest block that the RPC provider knows. */
  blockNumber: number;
}

/** The percentiles to request from `eth_feeHistory`, in the order slow, standard, fast. */
export const PERCENTILES = [10, 50, 90];

const MAX_BLOCKS = 1_024;

// Ethereum's JSON-RPC writes quantities as hexadecimal without leading zeros, and none has more than 256 bits.
const quantity = z
  .string()
  .regex(/^0x(?:0|[1-9a-f][0-9a-f]{0,63})$/i)
  .transform(BigInt);
const countable = quantity.refine((value) => value <= BigInt(Number.MAX_SAFE_INTEGER)).transform(Number);

const feeHistorySchema = z.object({
  oldestBlock: countable,
  baseFeePerGas: z
    .array(quantity)
    .min(2)
    .max(MAX_BLOCKS + 1),
  reward: z.array(z.array(quantity).length(PERCENTILES.length)).min(1).max(MAX_BLOCKS),
});

/**
 * Reads the results of `eth_chainId` and `eth_feeHistory`; returns undefined when they are malformed or inconsistent.
 * Each priority fee is the median over the blocks, so that a single unusual block moves no price.
 */
export function gasPricesOf(chainId: unknown, feeHistory: unknown): GasPrices | undefined {
  const chain = countable.safeParse(chainId);
  const history = feeHistorySchema.safeParse(feeHistory);
  if (!chain.success || !history.success) return undefined;
  const { oldestBlock, baseFeePerGas, reward } = history.data;
  const blockNumber = oldestBlock + reward.length - 1;
  // The array has a base fee for each block and one more for the next block.
  const baseFee = baseFeePerGas[reward.length];
  if (baseFee === undefined || baseFeePerGas.length !== reward.length + 1) return undefined;
  if (!Number.isSafeInteger(blockNumber)) return undefined;
  const [slow = 0n, standard = 0n, fast = 0n] = PERCENTILES.map((_, index) =>
    median(reward.map((fees) => fees[index] ?? 0n)),
  );
  return {
    chainId: chain.data,
    baseFee: `${baseFee}`,
    priorityFee: { slow: `${slow}`, standard: `${standard}`, fast: `${fast}` },
    gasPrice: `${baseFee + standard}`,
    blockNumber,
  };
}

/** Returns the median; for an even number of values, the lower of the two in the middle. */
function median(values: readonly bigint[]): bigint {
  const sorted = values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0n;
}
