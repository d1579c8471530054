export { PlainMessage } from '../../../../src/lib/fast/kafka-encoding.ts';

/** Leaves the encoding of requests to kafkajs. */
export function encodePlainMessages(): void {}
