import {
  type CountedRequest,
  countRequest,
  NOTHING_COUNTED,
  type RequestCounts,
  type RequestLimits,
} from './request-counts.rules.ts';

const MAX_CLIENTS = 10_000;

/** The requests of clients as one process has counted them; of more than 10,000 clients the oldest is forgotten. */
export class MemoryRequestCounts {
  readonly #counts = new Map<string, RequestCounts>();
  readonly #maxClients: number;

  constructor(maxClients = MAX_CLIENTS) {
    this.#maxClients = maxClients;
  }

  count(clientId: string, limits: RequestLimits, nowMs: number, seed: number | undefined): CountedRequest {
    const stored = this.#counts.get(clientId);
    const counted = countRequest(stored ?? NOTHING_COUNTED, limits, nowMs, seed);
    if (counted.outcome !== 'counted' && seed === undefined) return counted;
    if (!stored && this.#counts.size >= this.#maxClients) this.#forgetOldest();
    this.#counts.set(clientId, counted);
    return counted;
  }

  get size(): number {
    return this.#counts.size;
  }

  /** False where nothing of this client was counted. */
  forget(clientId: string): boolean {
    return this.#counts.delete(clientId);
  }

  #forgetOldest(): void {
    for (const clientId of this.#counts.keys()) {
      this.#counts.delete(clientId);
      return;
    }
  }
}
