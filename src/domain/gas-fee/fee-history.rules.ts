import { z } from 'zod';

/** What gas costs on one network, in wei as decimal text (decisions: `GET /v2/blockchain/gas-fee`). */
export interface GasPrices {
  chainId: number;
  /** Of the block that comes next. */
  baseFee: string;
  /** What half of the transactions of recent blocks paid on top of it (`standard`), a tenth (`slow`), and nine tenths (`fast`). */
  priorityFee: { slow: string; standard: string; fast: string };
  /** `baseFee` and the standard priority fee together. */
  gasPrice: string;
  /** The latest block that is known. */
  blockNumber: number;
}

/** The percentiles that `eth_feeHistory` is asked for, in the order of `priorityFee`. */
export const PERCENTILES = [10, 50, 90];

const MAX_BLOCKS = 1_024;

// Ethereum's JSON-RPC writes quantities without leading zeros; none has more than 256 bits.
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
 * Reads the results of `eth_chainId` and `eth_feeHistory`; undefined where they are malformed or do not fit together. Of
 * the blocks' rewards the middle one counts: a single block of outliers moves no price.
 */
export function gasPricesOf(chainId: unknown, feeHistory: unknown): GasPrices | undefined {
  const chain = countable.safeParse(chainId);
  const history = feeHistorySchema.safeParse(feeHistory);
  if (!chain.success || !history.success) return undefined;
  const { oldestBlock, baseFeePerGas, reward } = history.data;
  const blockNumber = oldestBlock + reward.length - 1;
  // One for each block, and one for the block after them.
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

/** The lower middle one. */
function median(values: readonly bigint[]): bigint {
  const sorted = values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0n;
}
