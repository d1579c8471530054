/** Says that the log cannot go on from a cursor without a gap: it is older than the oldest event, or was never given. */
export class CursorExpiredError extends Error {
  override name = 'CursorExpiredError';

  constructor(after: bigint) {
    super(`the event log does not go on from ${after}`);
  }
}

/** Says that too many events of a subscriber are unsent. It may come back with the cursor of the last event that it got. */
export class SlowConsumerError extends Error {
  override name = 'SlowConsumerError';

  constructor() {
    super('too many events are unsent');
  }
}

/** Says that the token of a subscription has expired or was revoked. */
export class TokenEndedError extends Error {
  override name = 'TokenEndedError';

  constructor() {
    super('the token has ended');
  }
}

/** Says that the process is stopping; the subscriber may come back with the cursor of the last event that it got. */
export class StreamStoppedError extends Error {
  override name = 'StreamStoppedError';

  constructor() {
    super('the service is stopping');
  }
}
