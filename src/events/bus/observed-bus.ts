import { Counter, type Metric } from 'prom-client';
import type { Log } from '../../lib/log.ts';
import { MemoizedRead } from '../../lib/memoized-read.ts';
import { durations, gauges } from '../../lib/meters.ts';
import { type Span, type SpanAttributes, type Tracer, validTraceparent } from '../../lib/tracing.ts';
import {
  type BatchHandler,
  type ConsumerLag,
  type EventBus,
  isDeadLetterTopic,
  nameOf,
  type OutgoingMessage,
  originOf,
  type PublishOptions,
  type SubscribeOptions,
  type Subscription,
} from './event-bus.ts';

const SYSTEM = 'kafka';

/**
 * Wraps an event bus to measure durations, to log dead letters, and to create spans for messages that belong to a
 * trace. The span of sending or of processing a message is a child of the one in its `traceparent` header, which then
 * names the new span.
 */
export class ObservedBus implements EventBus {
  readonly metrics: readonly Metric[];
  readonly #groups = new Map<string, readonly string[]>();
  readonly #deps;
  readonly #sent = durations({
    name: 'messaging_client_operation_duration_seconds',
    help: 'Time until the bus acknowledged or rejected messages, by topic.',
    labelNames: ['messaging_destination_name', 'messaging_operation_name', 'error_type'],
  });
  readonly #processed = durations({
    name: 'messaging_process_duration_seconds',
    help: 'Time to process a batch of messages, by topic and consumer group.',
    labelNames: ['messaging_destination_name', 'messaging_consumer_group_name', 'error_type'],
  });
  readonly #consumed = new Counter({
    name: 'messaging_client_consumed_messages_total',
    help: 'Messages delivered to a consumer group, including redeliveries.',
    labelNames: ['messaging_destination_name', 'messaging_consumer_group_name'],
    registers: [],
  });
  readonly #dead = new Counter({
    name: 'portcullis_dead_letters_total',
    help: 'Messages sent to the dead-letter topic, by original topic.',
    labelNames: ['messaging_destination_name'],
    registers: [],
  });

  constructor(deps: { bus: EventBus; tracer: Tracer | undefined; log: Log }) {
    this.#deps = deps;
    this.metrics = [this.#sent, this.#processed, this.#consumed, this.#dead];
  }

  /** Returns the lag of the given consumer groups; by default, of those that this process consumes for. */
  async lag(groups: ReadonlyMap<string, readonly string[]> = this.#groups): Promise<ConsumerLag[]> {
    return (await this.#deps.bus.lag?.(groups)) ?? [];
  }

  async publish(messages: readonly OutgoingMessage[], options?: PublishOptions): Promise<void> {
    const startedTick = performance.now();
    const { traced, spans } = this.#traced(messages, 'send');
    try {
      await this.#deps.bus.publish(traced, options);
    } catch (error) {
      this.#measure(messages, startedTick, nameOf(error));
      for (const span of spans) span.end(nameOf(error));
      throw error;
    }
    this.#measure(messages, startedTick, '', options?.cause);
    for (const span of spans) span.end();
  }

  subscribe(options: SubscribeOptions): Promise<Subscription> {
    this.#groups.set(options.groupId, options.topics);
    // Starts the counter at zero: without that, the first dead letter would not appear as an increase.
    for (const topic of options.topics) this.#dead.inc({ messaging_destination_name: topic }, 0);
    return this.#deps.bus.subscribe({ ...options, handle: this.#observed(options) });
  }

  ensureTopics(topics: readonly string[]): Promise<void> {
    return this.#deps.bus.ensureTopics(topics);
  }

  missingTopics(topics: readonly string[], partitions?: number): Promise<string[]> {
    return this.#deps.bus.missingTopics(topics, partitions);
  }

  checkHealth(): Promise<void> {
    return this.#deps.bus.checkHealth();
  }

  stop(): Promise<void> {
    return this.#deps.bus.stop();
  }

  #measure(messages: readonly OutgoingMessage[], startedTick: number, error: string, cause?: unknown): void {
    const seconds = (performance.now() - startedTick) / 1_000;
    let counted: string | undefined;
    for (const { topic, headers } of messages) {
      if (isDeadLetterTopic(topic) && error === '') this.#isDead(originOf(topic), headers, cause);
      if (topic === counted) continue;
      counted = topic;
      const labels = { messaging_destination_name: topic, messaging_operation_name: 'send', error_type: error };
      this.#sent.observe(labels, seconds);
    }
  }

  #isDead(topic: string, headers: OutgoingMessage['headers'], err: unknown): void {
    this.#dead.inc({ messaging_destination_name: topic });
    const { error: cause, 'original-partition': partition, 'original-offset': offset } = headers;
    const fields = { topic, partition, offset, cause, correlation_id: headers['correlation-id'], err };
    this.#deps.log.error(fields, 'could not apply a message; moved it to the dead letters');
  }

  #observed({ groupId, handle }: SubscribeOptions): BatchHandler {
    return async (batch, failures) => {
      const startedTick = performance.now();
      const topic = batch[0]?.topic ?? '';
      const labels = { messaging_destination_name: topic, messaging_consumer_group_name: groupId };
      const { traced, spans } = this.#traced(batch, 'process', ({ partition, offset }) => ({
        'messaging.consumer.group.name': groupId,
        'messaging.destination.partition.id': String(partition),
        'messaging.kafka.offset': offset,
      }));
      let error = '';
      try {
        // The handler runs within the span of the first message: its log lines about the whole batch join that trace.
        await (spans[0] ? spans[0].run(() => handle(traced, failures)) : handle(traced, failures));
      } catch (thrown) {
        error = nameOf(thrown);
        throw thrown;
      } finally {
        this.#consumed.inc(labels, batch.length);
        this.#processed.observe({ ...labels, error_type: error }, (performance.now() - startedTick) / 1_000);
        for (const span of spans) span.end(error === '' ? undefined : error);
      }
    };
  }

  /** Starts a span for each message that belongs to a trace, and returns the messages with the span's `traceparent`. */
  #traced<Message extends OutgoingMessage>(
    messages: readonly Message[],
    operation: 'send' | 'process',
    attributesOf: (message: Message) => SpanAttributes = () => ({}),
  ): { traced: Message[]; spans: Span[] } {
    const { tracer } = this.#deps;
    const spans: Span[] = [];
    if (!tracer) return { traced: [...messages], spans };
    const traced = messages.map((message) => {
      const parent = validTraceparent(message.headers.traceparent);
      if (parent === undefined) return message;
      const span = tracer.start(`${operation} ${message.topic}`, {
        kind: operation === 'send' ? 'producer' : 'consumer',
        parent,
        attributes: {
          'messaging.system': SYSTEM,
          'messaging.destination.name': message.topic,
          'messaging.operation.name': operation,
          'messaging.operation.type': operation,
          ...attributesOf(message),
        },
      });
      spans.push(span);
      return { ...message, headers: { ...message.headers, traceparent: span.traceparent } };
    });
    return { traced, spans };
  }
}

const MAX_AGE_MS = 5_000;
const DEADLINE_MS = 2_000;

/**
 * Returns the gauges of the lag of each consumer group of this process; they count all partitions, including those that
 * other processes consume.
 */
export function lagMetrics(bus: { lag(): Promise<ConsumerLag[]> }): Metric[] {
  const snapshot = new MemoizedRead(() => bus.lag(), { maxAgeMs: MAX_AGE_MS, deadlineMs: DEADLINE_MS });
  const lag = (name: string, help: string, measure: (lag: ConsumerLag) => number) =>
    gauges({
      name,
      help,
      labelNames: ['messaging_consumer_group_name', 'messaging_destination_name'],
      read: async () =>
        ((await snapshot.get()) ?? []).map((one) => [
          { messaging_consumer_group_name: one.groupId, messaging_destination_name: one.topic },
          measure(one),
        ]),
    });
  return [
    lag(
      'portcullis_consumer_lag_messages',
      'Messages that a consumer group has not consumed, by topic; each process reports the whole group.',
      ({ messages }) => messages,
    ),
    lag(
      'portcullis_consumer_oldest_seconds',
      'Age of the oldest message that a consumer group has not consumed, by topic; 0 if it has consumed all; each process reports the whole group.',
      ({ oldestSeconds }) => oldestSeconds,
    ),
  ];
}
