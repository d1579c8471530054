const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Aborts at the first interrupt of the process, which then goes on; the next one ends it as ever. */
export class Interruption implements Disposable {
  readonly #controller = new AbortController();
  readonly #abort = () => {
    this[Symbol.dispose]();
    this.#controller.abort();
  };

  constructor() {
    for (const signal of SIGNALS) process.on(signal, this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#abort);
  }
}
