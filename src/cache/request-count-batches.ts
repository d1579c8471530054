import type { CountedRequest, RequestLimits } from './request-counts.rules.ts';

/** Requests of one client that are counted in one step, at one time. */
export interface CountQuestion {
  readonly clientId: string;
  readonly limits: RequestLimits;
  readonly nowMs: number;
  readonly requests: number;
}

/** Gives the answer to each request, in their order. */
type Ask = (question: CountQuestion) => Promise<readonly CountedRequest[]>;

interface Batch {
  readonly limits: RequestLimits;
  readonly nowMs: number;
  readonly waiting: PromiseWithResolvers<CountedRequest>[];
}

/**
 * Counts the requests of a client that come in one turn of the event loop by one question: a busy client would else cost
 * a round trip's work for each. The time of a batch is that of its first request.
 */
export class RequestCountBatches {
  readonly #ask: Ask;
  readonly #open = new Map<string, Batch>();

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Rejects with the error of the question. */
  count(clientId: string, limits: RequestLimits, nowMs: number): Promise<CountedRequest> {
    const answer = Promise.withResolvers<CountedRequest>();
    const open = this.#open.get(clientId);
    if (open?.limits === limits) open.waiting.push(answer);
    else {
      const batch = { limits, nowMs, waiting: [answer] };
      this.#open.set(clientId, batch);
      setImmediate(() => void this.#send(clientId, batch));
    }
    return answer.promise;
  }

  async #send(clientId: string, batch: Batch): Promise<void> {
    if (this.#open.get(clientId) === batch) this.#open.delete(clientId);
    const { limits, nowMs, waiting } = batch;
    try {
      const answers = await this.#ask({ clientId, limits, nowMs, requests: waiting.length });
      for (const [index, { resolve, reject }] of waiting.entries()) {
        const answer = answers[index];
        if (answer) resolve(answer);
        else reject(new Error('a request was left out of the count'));
      }
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}
