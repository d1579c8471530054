/** The cursor names no place that the log can go on from without a gap: older than what is kept, or never given. */
export class CursorExpiredError extends Error {
  override name = 'CursorExpiredError';

  constructor(after: bigint) {
    super(`the event log does not go on from ${after}`);
  }
}

/** The reader has left too much unsent. It may come back with the cursor of the last event that it got. */
export class SlowConsumerError extends Error {
  override name = 'SlowConsumerError';

  constructor() {
    super('too many events are unsent');
  }
}

/** The token that the subscription was made with has ended. */
export class TokenEndedError extends Error {
  override name = 'TokenEndedError';

  constructor() {
    super('the token has ended');
  }
}

/** The service is stopping; the reader may come back elsewhere with the cursor of the last event that it got. */
export class StreamStoppedError extends Error {
  override name = 'StreamStoppedError';

  constructor() {
    super('the service is stopping');
  }
}
