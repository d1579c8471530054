import { createRequire } from 'node:module';

/** The prototypes of kafkajs that are patched, with the members that are used here. */
interface Prototypes {
  queue: {
    readonly pending: readonly unknown[];
    scheduleCheckPendingRequests(): void;
    scheduleRequestTimeoutCheck(): void;
  };
  request: {
    readonly requestTimeout: number;
    timer?: NodeJS.Timeout;
    send(): void;
    completed(response: unknown): void;
    rejected(error: unknown): void;
    timeoutRequest(): void;
  };
  cluster: {
    readonly brokerPool: {
      readonly metadata: unknown;
      /** Resolves to null if no broker succeeds. */
      withBroker(ask: (at: { broker: { metadata(topics?: string[]): unknown } }) => unknown): Promise<unknown>;
    };
    metadata(of?: { topics?: string[] }): Promise<unknown>;
  };
}

const rest = () => undefined;

const expire = (request: Prototypes['request']) => request.timeoutRequest();

/**
 * Patches kafkajs so that a connection without requests does nothing. kafkajs checks for waiting requests for as long as
 * the connection exists, every millisecond: it sets its timer to the end of a throttling that never began, which is in
 * the past, and Node warns of it. It looks ten times a second for requests whose time is over; here each request has a
 * timer. For metadata it asks twice, first for its own list of brokers, which is of use if none of them answers.
 */
export function restWhenNothingWaits(): void {
  const require = createRequire(import.meta.url);
  const { queue, request, cluster }: Prototypes = {
    queue: require('kafkajs/src/network/requestQueue/index.js').prototype,
    request: require('kafkajs/src/network/requestQueue/socketRequest.js').prototype,
    cluster: require('kafkajs/src/cluster/index.js').prototype,
  };
  if (queue.scheduleRequestTimeoutCheck === rest) return;
  const [checkPending, send, metadata] = [queue.scheduleCheckPendingRequests, request.send, cluster.metadata];
  queue.scheduleCheckPendingRequests = function () {
    if (this.pending.length > 0) checkPending.call(this);
  };
  queue.scheduleRequestTimeoutCheck = rest;
  request.send = function () {
    send.call(this);
    this.timer = setTimeout(expire, this.requestTimeout, this);
  };
  for (const end of ['completed', 'rejected'] as const) {
    const library = request[end];
    request[end] = function (result) {
      clearTimeout(this.timer);
      library.call(this, result);
    };
  }
  cluster.metadata = async function (of) {
    if (!this.brokerPool.metadata) return metadata.call(this, of);
    return (await this.brokerPool.withBroker(({ broker }) => broker.metadata(of?.topics))) ?? metadata.call(this, of);
  };
}
