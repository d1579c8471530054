import { z } from 'zod';

/** The gas prices of one network, in wei as decimal text (docs/contract.md, D8-03). */
export interface GasPrices {
  chainId: number;
  /** The base fee of the next block, in wei; null if the chain has none. */
  baseFee: string | null;
  /**
   * The fee paid on top of the base fee in recent blocks, in wei: by the 10th (`slow`), 50th (`standard`) and 90th
   * (`fast`) percentile of transactions; null if the RPC provider reports none.
   */
  priorityFee: { slow: string; standard: string; fast: string } | null;
  /** The sum of `baseFee` and the standard priority fee, or `eth_gasPrice` of a chain without base fees, in wei. */
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
  // Some providers send nothing, null or an empty list for a block without transactions, or for all blocks.
  reward: z
    .array(z.union([z.array(quantity).length(PERCENTILES.length), z.array(z.null()), z.null()]))
    .max(MAX_BLOCKS)
    .nullish(),
});

/**
 * Reads the results of `eth_chainId` and `eth_feeHistory`; returns undefined when they are malformed or inconsistent.
 * Each priority fee is the median over the blocks that have one, so that a single unusual block moves no price.
 */
export function gasPricesOf(chainId: unknown, feeHistory: unknown): GasPrices | undefined {
  const chain = countable.safeParse(chainId);
  const history = feeHistorySchema.safeParse(feeHistory);
  if (!chain.success || !history.success) return undefined;
  const { oldestBlock, baseFeePerGas, reward } = history.data;
  // The array has a base fee for each block and one more for the next block.
  const baseFee = baseFeePerGas.at(-1);
  const blocks = baseFeePerGas.length - 1;
  const blockNumber = oldestBlock + blocks - 1;
  if (baseFee === undefined || (reward?.length && reward.length !== blocks)) return undefined;
  if (!Number.isSafeInteger(blockNumber)) return undefined;
  const rewards = reward?.filter((fees) => fees?.some((fee) => fee !== null)) ?? [];
  const [slow, standard, fast] = PERCENTILES.map((_, index) => median(rewards.map((fees) => fees?.[index] ?? 0n)));
  return {
    chainId: chain.data,
    baseFee: `${baseFee}`,
    priorityFee: rewards.length === 0 ? null : { slow: `${slow}`, standard: `${standard}`, fast: `${fast}` },
    gasPrice: `${baseFee + (standard ?? 0n)}`,
    blockNumber,
  };
}

/** Checks whether a result of `eth_feeHistory` has no base fees, as on a chain from before EIP-1559. */
export function lacksBaseFees(feeHistory: unknown): boolean {
  const { baseFeePerGas } = Object(feeHistory) as { baseFeePerGas?: unknown };
  return [baseFeePerGas].flat().every((fee) => fee === null || fee === undefined);
}

/**
 * Reads the results of `eth_chainId`, `eth_gasPrice` and `eth_blockNumber`; returns undefined when one is malformed.
 */
export function singlePriceOf(chainId: unknown, gasPrice: unknown, blockNumber: unknown): GasPrices | undefined {
  const read = z.tuple([countable, quantity, countable]).safeParse([chainId, gasPrice, blockNumber]);
  if (!read.success) return undefined;
  const [chain, price, block] = read.data;
  return { chainId: chain, baseFee: null, priorityFee: null, gasPrice: `${price}`, blockNumber: block };
}

/** Returns the median; for an even number of values, the lower of the two in the middle. */
function median(values: readonly bigint[]): bigint {
  const sorted = values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0n;
}
