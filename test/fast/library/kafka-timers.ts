/** Leaves the timers of connections to kafkajs. */
export function restWhenNothingWaits(): void {}
