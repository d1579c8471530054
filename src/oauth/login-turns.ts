import { serviceUnavailable } from '../errors/app-error.ts';

const WAITING = 64;

/** Work under one key goes one after another; work under different keys goes on beside each other. */
export class LoginTurns {
  readonly #queues = new Map<string, (() => void)[]>();

  /**
   * Runs `work` once all that came before it under this key has ended, well or not.
   * @throws AppError 503 where as many are waiting as may.
   */
  async inTurn<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    await this.#enter(key);
    try {
      return await work();
    } finally {
      this.#leave(key);
    }
  }

  async #enter(key: string): Promise<void> {
    const waiting = this.#queues.get(key);
    if (!waiting) return void this.#queues.set(key, []);
    if (waiting.length >= WAITING) throw serviceUnavailable();
    await new Promise<void>((resolve) => waiting.push(resolve));
  }

  #leave(key: string): void {
    const next = this.#queues.get(key)?.shift();
    if (next) next();
    else this.#queues.delete(key);
  }
}
