import type { LoggedEvent } from '../../events/streams/event-log.ts';
import type { TransactionSnapshot } from './transaction-store.ts';
import { STATUS } from './type-codes.rules.ts';

/** A transaction as readers are shown it: the members of a snapshot, and no others. */
export type TransactionView = {
  [Name in keyof TransactionSnapshot as string extends Name ? never : Name]: TransactionSnapshot[Name];
};

/** The transaction in a row of the event log, which this service has written itself. */
export function viewOfLogged(transaction: Record<string, unknown>): TransactionView {
  return transaction as TransactionSnapshot;
}

/** A transaction as it is and as it becomes; ends with a final state, Done or Error. */
export class TransactionStates implements AsyncIterableIterator<TransactionView, undefined> {
  #state: TransactionView;
  #isTaken = false;
  readonly #follow: () => AsyncIterator<LoggedEvent>;
  #changes: AsyncIterator<LoggedEvent> | undefined;

  /** `follow` gives the changes after `current`; it is called only if more can come. */
  constructor(current: TransactionView, follow: () => AsyncIterator<LoggedEvent>) {
    this.#state = current;
    this.#follow = follow;
  }

  async next(): Promise<IteratorResult<TransactionView, undefined>> {
    if (!this.#isTaken) {
      this.#isTaken = true;
      if (!isFinal(this.#state)) this.#changes = this.#follow();
      return { done: false, value: this.#state };
    }
    const change = isFinal(this.#state) ? undefined : await this.#changes?.next();
    if (change === undefined || change.done) return this.return();
    this.#state = viewOfLogged(change.value.transaction);
    return { done: false, value: this.#state };
  }

  async return(): Promise<IteratorResult<TransactionView, undefined>> {
    await this.#changes?.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

function isFinal({ status }: TransactionView): boolean {
  return status === STATUS.Done || status === STATUS.Error;
}
