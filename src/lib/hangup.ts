import { isatty } from 'node:tty';

/**
 * SIGHUP: it asks for something, and ends the process only where its terminal has gone, which says so by the same signal.
 * From its making on none is lost.
 */
export class Hangups {
  readonly #terminals = [0, 1, 2].filter((fd) => isatty(fd));
  #onAsk: (() => void) | undefined;
  #isAsked = false;

  constructor(onTerminalGone: () => void) {
    process.on('SIGHUP', () => {
      if (this.#terminals.some((fd) => !isatty(fd))) onTerminalGone();
      else if (this.#onAsk) this.#onAsk();
      else this.#isAsked = true;
    });
  }

  /** Calls `onAsk` with each signal, and at once if there was one before. */
  heed(onAsk: () => void): void {
    this.#onAsk = onAsk;
    if (this.#isAsked) onAsk();
  }
}
