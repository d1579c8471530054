import { Gauge, type Metric } from 'prom-client';
import type { GroupLag } from '../events/event-bus.ts';
import { Snapshot } from '../lib/snapshot.ts';

const MAX_AGE_MS = 5_000;
const DEADLINE_MS = 2_000;

/** How far the groups that a process consumes for are behind, whichever process has their partitions. */
export function lagMetric(bus: { lag(): Promise<GroupLag[]> }): Metric {
  const snapshot = new Snapshot(() => bus.lag(), { maxAgeMs: MAX_AGE_MS, deadlineMs: DEADLINE_MS });
  return new Gauge({
    name: 'portcullis_consumer_lag_messages',
    help: 'Messages that a consumer group has not taken yet, by topic; each process tells of the whole group.',
    labelNames: ['messaging_consumer_group_name', 'messaging_destination_name'],
    registers: [],
    async collect() {
      this.reset();
      for (const { groupId, topic, messages } of (await snapshot.get()) ?? []) {
        this.set({ messaging_consumer_group_name: groupId, messaging_destination_name: topic }, messages);
      }
    },
  });
}
