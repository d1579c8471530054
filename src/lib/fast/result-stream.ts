import type { ExecutionResult } from 'graphql';

/**
 * The results of one subscription, one for each event as it arrives. It replaces graphql-js's own mapping, which takes
 * several ticks and copies all arguments for each event even when the result exists already.
 */
export class ResultStream implements AsyncIterableIterator<ExecutionResult, undefined> {
  readonly #events: AsyncIterator<unknown>;
  readonly #answer: (event: unknown) => ExecutionResult | Promise<ExecutionResult>;
  #isEnded = false;

  constructor(events: AsyncIterable<unknown>, answer: (event: unknown) => ExecutionResult | Promise<ExecutionResult>) {
    this.#events = events[Symbol.asyncIterator]();
    this.#answer = answer;
  }

  /**
   * Returns the next result. Rejects with the error that ends the events, or when the result of an event cannot be
   * computed, which ends them too.
   */
  async next(): Promise<IteratorResult<ExecutionResult, undefined>> {
    if (this.#isEnded) return { done: true, value: undefined };
    const { done, value: event } = await this.#events.next();
    if (done || this.#isEnded) return { done: true, value: undefined };
    try {
      const answer = this.#answer(event);
      const value = answer instanceof Promise ? await answer : answer;
      return this.#isEnded ? { done: true, value: undefined } : { done: false, value };
    } catch (error) {
      await this.return();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<ExecutionResult, undefined>> {
    this.#isEnded = true;
    await this.#events.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
