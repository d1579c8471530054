/**
 * Thrown when the event log cannot continue from a cursor without a gap: the cursor is older than the oldest event, or
 * was never issued.
 */
export class CursorExpiredError extends Error {
  override name = 'CursorExpiredError';

  constructor(after: bigint) {
    super(`the event log no longer has the events after ${after}`);
  }
}

/**
 * Thrown when too many events of a subscriber have not been sent. It may resume with the cursor of the last event that
 * it received.
 */
export class SlowConsumerError extends Error {
  override name = 'SlowConsumerError';

  constructor() {
    super('too many events are unsent');
  }
}

/**
 * Thrown when the process is stopping. The subscriber may resume with the cursor of the last event that it received.
 */
export class StreamStoppedError extends Error {
  override name = 'StreamStoppedError';

  constructor() {
    super('the service is stopping');
  }
}
