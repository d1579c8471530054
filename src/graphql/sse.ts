import type { ExecutionResult } from 'graphql';
import type { FetchAPI } from 'graphql-yoga';
import { eventIdOf, frameOf } from './event-answers.ts';
import { text } from './http-results.ts';
import { STOPPING } from './live-events.ts';

const PING_MS = 12_000;
const PING = ':\n\n';

const encoder = new TextEncoder();

interface OpenStream {
  ping(): void;
  /** Ends it without `complete`, so that the client comes back. */
  cut(): void;
}

/** The event streams that are open: server-sent events in the "distinct connections" form of GraphQL over SSE. */
export class SseStreams {
  readonly #open = new Set<OpenStream>();
  #pings: NodeJS.Timeout | undefined;
  #isStopped = false;

  /**
   * Answers with a stream of results, each a `next`, and a `complete` behind the last. `drop` ends the connection of a
   * reader that has taken nothing from one ping to the next though something waited for it.
   */
  respond(
    fetchAPI: FetchAPI,
    results: AsyncIterable<ExecutionResult>,
    told: (result: ExecutionResult) => ExecutionResult,
    drop: () => void,
  ): Response {
    const source = results[Symbol.asyncIterator]();
    const opened = Promise.withResolvers<OpenStream>();
    let isOpen = true;
    let isAwaited = false;
    let isStalled = false;
    const leave = (stream: OpenStream) => {
      isOpen = false;
      this.#leave(stream);
    };
    const body = new fetchAPI.ReadableStream<Uint8Array>({
      start: (controller) => {
        const send = (chunk: string) => controller.enqueue(encoder.encode(chunk));
        const stream: OpenStream = {
          ping: () => {
            if (isAwaited) send(PING);
            else if (isStalled) drop();
            else isStalled = true;
          },
          cut: () => {
            leave(stream);
            controller.close();
            void source.return?.();
          },
        };
        opened.resolve(stream);
        this.#enter(stream);
        // Some clients wait for a first byte.
        send(PING);
        if (this.#isStopped) stream.cut();
      },
      pull: async (controller) => {
        isStalled = false;
        isAwaited = true;
        const next = await source.next();
        isAwaited = false;
        const stream = await opened.promise;
        if (!isOpen) return;
        if (next.done) {
          controller.enqueue(encoder.encode('event: complete\ndata:\n\n'));
          leave(stream);
          controller.close();
        } else if (next.value.errors?.some(({ extensions }) => extensions.code === STOPPING)) stream.cut();
        else controller.enqueue(eventFrame(told(next.value)));
      },
      cancel: async () => {
        leave(await opened.promise);
        await source.return?.();
      },
    });
    const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' };
    return new fetchAPI.Response(body, { status: 200, headers });
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

  #enter(stream: OpenStream): void {
    this.#open.add(stream);
    this.#pings ??= setInterval(() => {
      for (const open of this.#open) open.ping();
    }, PING_MS);
  }

  #leave(stream: OpenStream): void {
    this.#open.delete(stream);
    if (this.#open.size > 0) return;
    clearInterval(this.#pings);
    this.#pings = undefined;
  }
}

function eventFrame(result: ExecutionResult): Uint8Array {
  return frameOf(result, () => {
    const id = eventIdOf(result);
    return encoder.encode(`event: next\n${id === undefined ? '' : `id: ${id}\n`}data: ${text(result)}\n\n`);
  });
}
