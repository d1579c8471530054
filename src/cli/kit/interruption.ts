const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Aborts its signal at the first interrupt, which does not end the process; the next interrupt ends it as usual. */
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
