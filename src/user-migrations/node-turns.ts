import { serviceUnavailable } from '../errors/app-error.ts';

const WAITING = 1_000;

/**
 * Work on the users of one node goes one after another. The database sees to that in all replicas; here it keeps those
 * who wait from holding a connection each.
 */
export class NodeTurns {
  readonly #queues = new Map<string, (() => void)[]>();

  /**
   * Runs `work` once all that came before it for this node has ended, well or not.
   * @throws AppError 503 where as many are waiting as may.
   */
  async inTurn<Result>(nodeId: string, work: () => Promise<Result>): Promise<Result> {
    const waiting = this.#queues.get(nodeId);
    if (!waiting) this.#queues.set(nodeId, []);
    else if (waiting.length >= WAITING) throw serviceUnavailable();
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#queues.get(nodeId)?.shift();
      if (next) next();
      else this.#queues.delete(nodeId);
    }
  }
}
