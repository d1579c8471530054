import type { FetchAPI } from 'graphql-yoga';
import { SseStream, type SseStreamParts } from './sse-stream.ts';

const PING_MS = 12_000;

/** The event streams that are open: server-sent events in the "distinct connections" form of GraphQL over SSE. */
export class SseStreams {
  readonly #streams = new WeakMap<Response, SseStream>();
  readonly #open = new Set<SseStream>();
  #pings: NodeJS.Timeout | undefined;
  #isStopped = false;

  /** Stands for a stream of results, each a `next`, and a `complete` behind the last; `run` sends it. */
  respond(fetchAPI: FetchAPI, parts: Omit<SseStreamParts, 'onClose'>): Response {
    const response = new fetchAPI.Response(null);
    const stream = new SseStream({ ...parts, onClose: (closed) => this.#leave(closed) });
    this.#streams.set(response, stream);
    // Its client may have gone while it was made ready, and the instance may be about to stop.
    if (!parts.res.closed) this.#enter(stream);
    if (parts.res.destroyed || this.#isStopped) stream.cut();
    return response;
  }

  /** Sends the stream that a response stands for, until its results or its client end it. @returns whether it is one. */
  run(response: Response): boolean {
    const stream = this.#streams.get(response);
    stream?.run();
    return stream !== undefined;
  }

  /** The number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends every stream without `complete`, those that begin later as well. */
  stop(): void {
    this.#isStopped = true;
    for (const stream of this.#open) stream.cut();
  }

  #enter(stream: SseStream): void {
    this.#open.add(stream);
    this.#pings ??= setInterval(() => {
      for (const open of this.#open) open.ping();
    }, PING_MS);
  }

  #leave(stream: SseStream): void {
    this.#open.delete(stream);
    if (this.#open.size > 0) return;
    clearInterval(this.#pings);
    this.#pings = undefined;
  }
}
