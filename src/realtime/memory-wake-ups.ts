import { PendingWakeUps } from './pending-wake-ups.ts';
import type { WakeUpListener, WakeUps } from './wake-ups.ts';

/** Wake-ups within a single process. */
export class MemoryWakeUps implements WakeUps {
  readonly #listeners = new Set<WakeUpListener>();
  readonly #pending = new PendingWakeUps((nodeId, seq) => {
    for (const listener of this.#listeners) listener(nodeId, seq);
  });

  notify(nodeId: string, seq: string): void {
    this.#pending.add(nodeId, seq);
  }

  listen(listener: WakeUpListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  async stop(): Promise<void> {
    this.#pending.clear();
    this.#listeners.clear();
  }
}
