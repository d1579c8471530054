import type { Clock } from '../realtime/clock.ts';
import { StreamStoppedError } from '../realtime/stream-errors.ts';
import type { MigrationProgressRow } from './migration-files.service.ts';
import { type ProgressFollower, ProgressStream } from './progress-stream.ts';

const POLL_MS = 500;

interface ProgressFeedParts {
  /** How far a migration of the node is, as the primary knows; undefined where there is none with this id. */
  progress(nodeId: string, id: string): Promise<MigrationProgressRow | undefined>;
  clock: Clock;
  /** Told once of each outage, with its first error. */
  onError(error: unknown): void;
}

/** A migration that is followed. */
interface Feed {
  nodeId: string;
  id: string;
  streams: Set<ProgressStream>;
  cancelPoll: () => void;
  isFailing: boolean;
}

/** Who follows which migrations in this process: each is read twice a second while somebody does, whoever runs it. */
export class ProgressFeeds {
  readonly #parts: ProgressFeedParts;
  readonly #feeds = new Map<string, Feed>();
  #isStopped = false;

  constructor(parts: ProgressFeedParts) {
    this.#parts = parts;
  }

  /** How many migrations are followed. */
  get size(): number {
    return this.#feeds.size;
  }

  /** How far the migration with this id (a UUID) is and gets; undefined where the node has none. */
  async follow(nodeId: string, id: string, follower: ProgressFollower): Promise<ProgressStream | undefined> {
    const first = await this.#parts.progress(nodeId, id);
    if (!first) return undefined;
    const feed = this.#feeds.get(id) ?? { nodeId, id, streams: new Set(), cancelPoll: () => {}, isFailing: false };
    const { clock } = this.#parts;
    const stream = new ProgressStream(first, follower, { clock, onEnd: (ended) => this.#leave(feed, ended) });
    if (stream.isEnded) return stream;
    feed.streams.add(stream);
    if (!this.#feeds.has(id)) {
      this.#feeds.set(id, feed);
      this.#schedule(feed);
    }
    if (this.#isStopped) stream.end(new StreamStoppedError());
    return stream;
  }

  /** Ends every stream with a StreamStoppedError. */
  stop(): void {
    this.#isStopped = true;
    for (const { streams } of [...this.#feeds.values()]) {
      for (const stream of streams) stream.end(new StreamStoppedError());
    }
  }

  #schedule(feed: Feed): void {
    feed.cancelPoll = this.#parts.clock.after(POLL_MS, () => void this.#poll(feed));
  }

  async #poll(feed: Feed): Promise<void> {
    try {
      const row = await this.#parts.progress(feed.nodeId, feed.id);
      feed.isFailing = false;
      for (const stream of feed.streams) {
        if (row) stream.offer(row);
        else stream.end();
      }
    } catch (error) {
      if (!feed.isFailing) this.#parts.onError(error);
      feed.isFailing = true;
    }
    if (feed.streams.size > 0) this.#schedule(feed);
  }

  #leave(feed: Feed, stream: ProgressStream): void {
    feed.streams.delete(stream);
    if (feed.streams.size > 0) return;
    feed.cancelPoll();
    if (this.#feeds.get(feed.id) === feed) this.#feeds.delete(feed.id);
  }
}
