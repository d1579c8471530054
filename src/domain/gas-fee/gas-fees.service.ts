import type { Log } from '../../lib/log.ts';
import type { GasPrices } from './fee-history.rules.ts';

/** What gas costs on a network, or that it cannot be said. */
export type GasFee = { networkId: string } & ((GasPrices & { updatedAtMs: number }) | { error: 'unavailable' });

/** Who is asked about one network. */
export interface GasSource {
  gasPrices(): Promise<GasPrices>;
}

interface GasFeesParts {
  /** By the id of the network. */
  sources: ReadonlyMap<string, GasSource>;
  nowMs(): number;
  log: Log;
}

interface Known {
  fee: GasFee;
  atMs: number;
}

const FRESH_MS = 5_000;
/** Nobody is shown a price that is older than that while a newer one is fetched; an outage is not shown beyond its 5 s. */
const STALE_MS = 60_000;

/**
 * Gas fees of every network that is configured. What is known is fresh for 5 s; for a minute after that it is still shown
 * while it is asked for anew. However many ask, each network is asked once at a time, and a network that fails makes the
 * others neither fail nor wait.
 */
export class GasFees {
  readonly #parts: GasFeesParts;
  readonly #known = new Map<string, Known>();
  readonly #asking = new Map<string, Promise<GasFee>>();

  constructor(parts: GasFeesParts) {
    this.#parts = parts;
  }

  /** In the order of the configuration. */
  list(): Promise<GasFee[]> {
    return Promise.all(this.#parts.sources.keys().map((networkId) => this.#feeOf(networkId)));
  }

  /** How many networks there are of which so much is known. */
  states(): Record<'fresh' | 'stale' | 'unavailable' | 'unasked', number> {
    const states = { fresh: 0, stale: 0, unavailable: 0, unasked: 0 };
    for (const networkId of this.#parts.sources.keys()) {
      const known = this.#known.get(networkId);
      if (!known) states.unasked += 1;
      else if ('error' in known.fee) states.unavailable += 1;
      else states[this.#ageMs(known) < FRESH_MS ? 'fresh' : 'stale'] += 1;
    }
    return states;
  }

  #feeOf(networkId: string): GasFee | Promise<GasFee> {
    const known = this.#known.get(networkId);
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : this.#ageMs(known);
    if (known && ageMs < FRESH_MS) return known.fee;
    const asked = this.#ask(networkId);
    return known && !('error' in known.fee) && ageMs < STALE_MS ? known.fee : asked;
  }

  /** Of what a clock that was set back since says is to come, as far as that is away. */
  #ageMs({ atMs }: Known): number {
    return Math.abs(this.#parts.nowMs() - atMs);
  }

  #ask(networkId: string): Promise<GasFee> {
    const asking =
      this.#asking.get(networkId) ??
      this.#asked(networkId).then((fee) => {
        this.#known.set(networkId, { fee, atMs: this.#parts.nowMs() });
        this.#asking.delete(networkId);
        return fee;
      });
    this.#asking.set(networkId, asking);
    return asking;
  }

  async #asked(networkId: string): Promise<GasFee> {
    const { sources, nowMs, log } = this.#parts;
    try {
      const prices = await sources.get(networkId)?.gasPrices();
      if (prices) return { networkId, ...prices, updatedAtMs: nowMs() };
    } catch (error) {
      log.warn({ network_id: networkId, err: error }, 'the gas fee of a network is unavailable');
    }
    return { networkId, error: 'unavailable' };
  }
}

/** What is told of a network's fees (specification section 4.9): in wei, as decimal text. */
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
