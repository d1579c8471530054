import { createRequire } from 'node:module';

/** The requests of one connection of kafkajs. */
interface RequestQueue {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
}

let isReplaced = false;

/**
 * Patches kafkajs to look for requests that can be sent only while some wait. Of itself it looks every millisecond for
 * as long as a connection exists, by a timer in the past, of which Node warns: it counts to the end of a throttling
 * that there never was.
 */
export function restWhenNothingWaits(): void {
  if (isReplaced) return;
  isReplaced = true;
  const { prototype }: { prototype: RequestQueue } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue');
  const { scheduleCheckPendingRequests } = prototype;
  prototype.scheduleCheckPendingRequests = function () {
    if (this.pending.length > 0) scheduleCheckPendingRequests.call(this);
  };
}
