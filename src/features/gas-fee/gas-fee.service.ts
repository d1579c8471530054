import type { Log } from '../../lib/log.ts';
import type { GasPrices } from './fee-history.rules.ts';
import { RpcProviderError } from './rpc-provider.service.ts';

/** The gas fee of one network, or `unavailable` with the reason, which never contains the provider's URL. */
export type GasFee = { networkId: string } & ((GasPrices & { updatedAtMs: number }) | { error: string });

/** A source of the gas prices of one network. */
export interface GasSource {
  gasPrices(): Promise<GasPrices>;
}

interface Known {
  fee: GasFee;
  atMs: number;
}

const FRESH_MS = 5_000;
/**
 * The greatest age, in ms, of a price that is still returned while a newer one is fetched. The result `unavailable` is
 * returned for `FRESH_MS` only.
 */
const STALE_MS = 60_000;

/**
 * Caches the gas fees of all configured networks. A fee is fresh for 5 s; until it is a minute old it is still returned
 * while a new one is fetched. Each network has at most one fetch in progress, and one network's failure neither fails
 * nor delays the others.
 */
export class GasFees {
  readonly #deps;
  readonly #known = new Map<string, Known>();
  readonly #asking = new Map<string, Promise<GasFee>>();

  constructor(deps: {
    /** The sources, by network id. */
    sources: ReadonlyMap<string, GasSource>;
    nowMs(): number;
    log: Log;
  }) {
    this.#deps = deps;
  }

  /** Returns the fee of every network, in the order of the configuration. */
  list(): Promise<GasFee[]> {
    return Promise.all(this.#deps.sources.keys().map((networkId) => this.#feeOf(networkId)));
  }

  /**
   * Returns the number of networks in each state of the cache; `unasked` are those whose fee has never been fetched, or
   * whose last attempt failed more than `STALE_MS` ago.
   */
  states(): Record<'fresh' | 'stale' | 'unavailable' | 'unasked', number> {
    const states = { fresh: 0, stale: 0, unavailable: 0, unasked: 0 };
    for (const networkId of this.#deps.sources.keys()) {
      const known = this.#known.get(networkId);
      if (!known) states.unasked += 1;
      else if ('error' in known.fee) states[this.#ageMs(known) < STALE_MS ? 'unavailable' : 'unasked'] += 1;
      else states[this.#ageMs(known) < FRESH_MS ? 'fresh' : 'stale'] += 1;
    }
    return states;
  }

  #feeOf(networkId: string): GasFee | Promise<GasFee> {
    const known = this.#known.get(networkId);
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : this.#ageMs(known);
    if (known && ageMs < FRESH_MS) return known.fee;
    const pendingFee = this.#ask(networkId);
    return known && !('error' in known.fee) && ageMs < STALE_MS ? known.fee : pendingFee;
  }

  /** Returns the age of a cached fee in ms. If the clock was set back, it is the distance to the future time. */
  #ageMs({ atMs }: Known): number {
    return Math.abs(this.#deps.nowMs() - atMs);
  }

  #ask(networkId: string): Promise<GasFee> {
    return this.#asking.getOrInsertComputed(networkId, async () => {
      const fee = await this.#fetchFee(networkId);
      this.#known.set(networkId, { fee, atMs: this.#deps.nowMs() });
      this.#asking.delete(networkId);
      return fee;
    });
  }

  async #fetchFee(networkId: string): Promise<GasFee> {
    try {
      const prices = await this.#deps.sources.get(networkId)?.gasPrices();
      if (prices) return { networkId, ...prices, updatedAtMs: this.#deps.nowMs() };
    } catch (error) {
      this.#deps.log.warn({ network_id: networkId, err: error }, 'gas fee of a network unavailable');
      if (error instanceof RpcProviderError) return { networkId, error: `unavailable: ${error.message}` };
    }
    return { networkId, error: 'unavailable' };
  }
}

/**
 * Returns a network's gas fee as REST and the MCP tools show it (docs/contract.md, 4.9-05), in wei as decimal text.
 */
export function gasFeeView(fee: GasFee) {
  if ('error' in fee) return { network_id: fee.networkId, error: fee.error };
  return {
    network_id: fee.networkId,
    chain_id: fee.chainId,
    base_fee: fee.baseFee,
    priority_fee: fee.priorityFee,
    gas_price: fee.gasPrice,
    block_number: fee.blockNumber,
    updated_at: new Date(fee.updatedAtMs).toISOString(),
  };
}
