import { setImmediate as nextTurn } from 'node:timers/promises';

/** The operations of a socket that are owed an answer: queries and mutations, and subscriptions until they have begun. */
export class Unanswered {
  readonly #ids = new Set<string>();
  #none = Promise.withResolvers<void>();

  begin(id: string): void {
    this.#ids.add(id);
  }

  /** To be called as the answer is handed to the socket, in this turn or before. May be called again. */
  end(id: string): void {
    if (!this.#ids.delete(id) || this.#ids.size > 0) return;
    this.#none.resolve();
    this.#none = Promise.withResolvers();
  }

  /** Resolves once the socket has every answer. */
  async none(): Promise<void> {
    if (this.#ids.size > 0) await this.#none.promise;
    await nextTurn();
  }
}
