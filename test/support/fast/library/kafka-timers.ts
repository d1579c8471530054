/** Leaves the timers of kafkajs as they are. */
export function restWhenNothingWaits(): void {}
