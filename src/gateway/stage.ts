import type { Exchange } from './exchange.ts';

/** One step of the chain: adds to the exchange, or refuses by throwing an `AppError`. */
export type Stage = (exchange: Exchange) => void | Promise<void>;

/** Runs the stages in order; a synchronous one costs no turn of the event loop. */
export async function runStages(stages: readonly Stage[], exchange: Exchange): Promise<void> {
  for (const stage of stages) {
    const pending = stage(exchange);
    if (pending) await pending;
  }
}
