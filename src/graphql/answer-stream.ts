import type { ExecutionResult } from 'graphql';
import type { Awaitable } from './event-answers.ts';

/**
 * The answers to the events of one subscription, each as its event comes. It stands in the place of graphql's own, which
 * takes several turns and a copy of all arguments for each event, also where the answer is there already.
 */
export class AnswerStream implements AsyncIterableIterator<ExecutionResult, undefined> {
  readonly #events: AsyncIterator<unknown>;
  readonly #answer: (event: unknown) => Awaitable<ExecutionResult>;
  #isEnded = false;

  constructor(events: AsyncIterable<unknown>, answer: (event: unknown) => Awaitable<ExecutionResult>) {
    this.#events = events[Symbol.asyncIterator]();
    this.#answer = answer;
  }

  /** Rejects with what the events end with, and where an event cannot be answered at all, which ends them. */
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
