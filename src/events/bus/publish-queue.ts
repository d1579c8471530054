import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import { withTimeout } from '../../lib/with-timeout.ts';
import { BusUnavailableError, type OutgoingMessage, PUBLISH_DEADLINE_MS } from './event-bus.ts';

const MAX_QUEUED_MESSAGES = 10_000;
export const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
const MESSAGE_OVERHEAD_BYTES = 64;

/** One call of `publish`; its messages are sent in the same batch. */
interface Call {
  messages: readonly OutgoingMessage[];
  topicBytes: Map<string, number>;
  bytes: number;
  /** Whether the caller is still waiting. */
  isOpen: boolean;
  resolve(): void;
  reject(error: Error): void;
}

/**
 * Coalesces concurrent calls into batches: while one batch is being sent, the next one fills. The queue is bounded, and
 * the deadline of each call holds even if sending takes longer.
 */
export class PublishQueue {
  readonly #options;
  /**
   * Runs a function outside the async context of any caller: a batch serves several, and a caller's transaction, for
   * example, must not leak into it.
   */
  readonly #outside = AsyncLocalStorage.snapshot();
  #waiting: Call[] = [];
  #heldMessages = 0;
  #heldBytes = 0;
  #draining: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: {
    /**
     * Sends messages and resolves when all are acknowledged; rejects if any is not. `isWanted` returns false once every
     * caller has stopped waiting, when a retry would be useless.
     */
    send(messages: OutgoingMessage[], isWanted: () => boolean): Promise<void>;
    /** The maximum number of messages in a batch; a single call with more is sent separately. */
    maxBatchMessages: number;
    /** The maximum number of bytes of one topic in a batch; a single call with more is sent separately. */
    maxTopicBytes: number;
    /** How many calls are sent concurrently when a batch of several has failed and each call is sent again separately. */
    singlesAtOnce: number;
  }) {
    this.#options = options;
  }

  /**
   * Queues messages and resolves when they are acknowledged.
   * @throws BusUnavailableError when the messages are refused, the queue is full or closed, or the deadline passes.
   */
  async publish(messages: readonly OutgoingMessage[], deadlineMs = PUBLISH_DEADLINE_MS): Promise<void> {
    if (messages.length === 0) return;
    if (this.#isClosed) throw new BusUnavailableError('the bus is stopped');
    if (deadlineMs <= 0) throw new BusUnavailableError('the deadline has passed');
    const topicBytes = bytesByTopic(messages);
    const bytes = topicBytes.values().reduce((sum, share) => sum + share, 0);
    if (this.#heldMessages + messages.length > MAX_QUEUED_MESSAGES || this.#heldBytes + bytes > MAX_QUEUED_BYTES) {
      throw new BusUnavailableError('the queue is full');
    }
    const { promise: acknowledged, resolve, reject } = Promise.withResolvers<void>();
    const call: Call = { messages, topicBytes, bytes, isOpen: true, resolve, reject };
    this.#waiting.push(call);
    this.#heldMessages += messages.length;
    this.#heldBytes += bytes;
    this.#draining ??= this.#outside(() => this.#drain());
    try {
      await withTimeout(acknowledged, deadlineMs, () => new BusUnavailableError('no acknowledgement in time'));
    } finally {
      call.isOpen = false;
    }
  }

  /** Closes the queue to new calls; resolves when every queued call has been sent or refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#draining;
  }

  async #drain(): Promise<void> {
    // Calls of the same tick of the event loop join the first batch.
    await setImmediate();
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch();
      await this.#deliver(batch.filter((call) => call.isOpen));
      for (const call of batch) {
        this.#heldMessages -= call.messages.length;
        this.#heldBytes -= call.bytes;
      }
    }
    this.#draining = undefined;
  }

  #takeBatch(): Call[] {
    const { maxBatchMessages, maxTopicBytes } = this.#options;
    const shares = new Map<string, number>();
    let messages = 0;
    let taken = 0;
    for (const call of this.#waiting) {
      messages += call.messages.length;
      for (const [topic, bytes] of call.topicBytes) shares.set(topic, (shares.get(topic) ?? 0) + bytes);
      const isOver = messages > maxBatchMessages || shares.values().some((share) => share > maxTopicBytes);
      if (isOver && taken > 0) break;
      taken += 1;
    }
    return this.#waiting.splice(0, taken);
  }

  async #deliver(calls: Call[]): Promise<void> {
    const isWanted = () => calls.some((call) => call.isOpen);
    if (!isWanted()) return;
    try {
      await this.#options.send(
        calls.flatMap((call) => call.messages),
        isWanted,
      );
      for (const call of calls) call.resolve();
    } catch (error) {
      if (calls.length > 1) await this.#deliverSingly(calls);
      else calls[0]?.reject(new BusUnavailableError('the broker rejected the messages', { cause: error }));
    }
  }

  /**
   * Sends each call of a failed batch separately, so that one that the bus cannot accept (too large, for example) fails
   * no other.
   */
  async #deliverSingly(calls: Call[]): Promise<void> {
    const remainingCalls = calls.values();
    const lanes = Array.from({ length: this.#options.singlesAtOnce }, async () => {
      for (const call of remainingCalls) await this.#deliver([call]);
    });
    await Promise.all(lanes);
  }
}

function bytesByTopic(messages: readonly OutgoingMessage[]): Map<string, number> {
  const shares = new Map<string, number>();
  for (const message of messages) shares.set(message.topic, (shares.get(message.topic) ?? 0) + sizeOf(message));
  return shares;
}

function sizeOf({ key, value, headers }: OutgoingMessage): number {
  let bytes = MESSAGE_OVERHEAD_BYTES + Buffer.byteLength(key) + (value?.length ?? 0);
  for (const [name, text] of Object.entries(headers)) bytes += Buffer.byteLength(name) + Buffer.byteLength(text);
  return bytes;
}
