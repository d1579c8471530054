import { createRequire } from 'node:module';

let isReplaced = false;

/**
 * Patches kafkajs so that a connection checks for waiting requests only while there are any. kafkajs checks for as long
 * as the connection exists, every millisecond: it sets its timer to the end of a throttling that never began, which is
 * in the past, and Node warns of it.
 */
export function restWhenNothingWaits(): void {
  if (isReplaced) return;
  isReplaced = true;
  const {
    prototype,
  }: {
    prototype: {
      readonly pending: readonly unknown[];
      scheduleCheckPendingRequests(): void;
    };
  } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue');
  const { scheduleCheckPendingRequests } = prototype;
  prototype.scheduleCheckPendingRequests = function () {
    if (this.pending.length > 0) scheduleCheckPendingRequests.call(this);
  };
}
