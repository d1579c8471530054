import type { EventStream } from '../../events/streams/event-streams.ts';
import { STATUS, type TransactionSnapshot } from '../../tables/transaction-content.ts';

/**
 * Iterates over the states of a transaction: the current one, then each later one. It ends after a final state, Done or
 * Error.
 */
export class TransactionStates implements AsyncIterableIterator<TransactionSnapshot, undefined> {
  #state: TransactionSnapshot;
  #isTaken = false;
  #isOwn = true;
  readonly #changes: EventStream | undefined;

  /** @param follow Returns the events after `current`. It is called only when `current` is not final. */
  constructor(current: TransactionSnapshot, follow: () => EventStream) {
    this.#state = current;
    this.#changes = isFinal(current) ? undefined : follow();
  }

  get signal(): AbortSignal | undefined {
    return this.#changes?.signal;
  }

  /** Checks whether the state that was taken last is not shared with other subscribers. */
  isOwn(): boolean {
    return this.#isOwn;
  }

  async next(): Promise<IteratorResult<TransactionSnapshot, undefined>> {
    if (!this.#isTaken) {
      this.#isTaken = true;
      return { done: false, value: this.#state };
    }
    const change = isFinal(this.#state) ? undefined : await this.#changes?.next();
    if (change === undefined || change.done) return this.return();
    this.#state = change.value.transaction;
    this.#isOwn = this.#changes?.isOwn(change.value) === true;
    return { done: false, value: this.#state };
  }

  async return(): Promise<IteratorResult<TransactionSnapshot, undefined>> {
    await this.#changes?.return();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

function isFinal({ status }: TransactionSnapshot): boolean {
  return status === STATUS.Done || status === STATUS.Error;
}
