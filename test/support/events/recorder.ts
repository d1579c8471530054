import { randomUUID } from 'node:crypto';
import { expect, vi } from 'vitest';
import type {
  BatchHandler,
  EventBus,
  IncomingMessage,
  OutgoingMessage,
  Subscription,
} from '../../../src/events/bus/event-bus.ts';

/** A consumer that keeps what took effect, and fails as often as it is told to. */
export class Recorder {
  readonly messages: IncomingMessage[] = [];
  readonly batchSizes: number[] = [];
  readonly attempts: string[] = [];
  #failuresLeft: number;

  constructor(failures = 0) {
    this.#failuresLeft = failures;
  }

  readonly handle = async (batch: IncomingMessage[]): Promise<void> => {
    this.attempts.push(batch[0]?.key ?? '');
    if (this.#failuresLeft > 0) {
      this.#failuresLeft -= 1;
      throw new Error('the store is away');
    }
    this.batchSizes.push(batch.length);
    this.messages.push(...batch);
  };

  get keys(): string[] {
    return this.messages.map((message) => message.key);
  }

  get texts(): string[] {
    return this.messages.map((message) => message.value?.toString() ?? '');
  }

  /** Follows `topics` in a group of its own unless one is named. */
  follow(bus: EventBus, topics: string | string[], groupId: string = randomUUID()): Promise<Subscription> {
    return bus.subscribe({ groupId, topics: [topics].flat(), handle: this.handle });
  }

  /** Waits until that many messages have taken effect. */
  async count(expected: number): Promise<void> {
    await vi.waitFor(() => expect(this.messages.length).toBeGreaterThanOrEqual(expected), {
      interval: 20,
    });
  }
}

/** A message with every part given or plain. */
export function message(topic: string, key: string, parts: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return { topic, key, value: Buffer.from(key), headers: {}, ...parts };
}

/** A bus that keeps what is published, and whose subscribers are given batches by hand. */
export function busByHand() {
  const handlers = new Map<string, BatchHandler>();
  const published: OutgoingMessage[] = [];
  const bus: Pick<EventBus, 'publish' | 'subscribe'> = {
    publish: async (messages) => void published.push(...messages),
    subscribe: async ({ topics, handle }) => {
      for (const topic of topics) handlers.set(topic, handle);
      return { stop: async () => undefined };
    },
  };
  const handle = async (topic: string, batch: IncomingMessage[], failures?: number): Promise<void> =>
    handlers.get(topic)?.(batch, failures);
  return { bus: bus as EventBus, published, handle, topics: () => [...handlers.keys()] };
}
