import { type BusDatabase, EmbeddedStore } from './embedded-store.ts';
import type { LogReader, PartitionSpan, ReadOptions, Within } from './log-reader.ts';

const PARTITION = 0;

/** What the embedded bus keeps: each topic is one partition, whose offsets rise with gaps. */
export class EmbeddedLogReader implements LogReader {
  readonly #store: EmbeddedStore;

  constructor(database: BusDatabase) {
    this.#store = new EmbeddedStore(database);
  }

  async spans(topic: string, within: Within): Promise<PartitionSpan[]> {
    const kept = await this.#store.kept(
      topic,
      'after' in within ? { after: within.after.get(PARTITION) ?? 0n } : within,
    );
    return kept ? [{ partition: PARTITION, first: kept.first, end: kept.last + 1n, count: kept.count }] : [];
  }

  async read({ topic, spans, handle, signal }: ReadOptions): Promise<void> {
    for (const { first, end } of spans) {
      for (let next = first; next < end && !signal.aborted; ) {
        const batch = await this.#store.readBetween(topic, next, end);
        const last = batch.at(-1);
        if (!last) break;
        await handle(batch);
        next = BigInt(last.offset) + 1n;
      }
    }
  }
}
