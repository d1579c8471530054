import { defineEntity, p } from '@mikro-orm/core';

/** An event that was written in the transaction of what it tells of, until it has been relayed. `id` is the event's. */
export const OutboxEvent = defineEntity({
  name: 'OutboxEvent',
  tableName: 'outbox',
  properties: {
    id: p.uuid().primary(),
    seq: p.bigint().$type<string>().autoincrement(),
    topic: p.text(),
    key: p.text(),
    eventType: p.text(),
    payload: p.text(),
    correlationId: p.text(),
    traceparent: p.text().nullable(),
    createdAt: p.datetime(6).$type<string>(),
  },
});
