import { defineEntity, p } from '@mikro-orm/core';

/** A message of the embedded bus. `position` is its offset, which rises in commit order. */
export const BusMessage = defineEntity({
  name: 'BusMessage',
  tableName: 'bus_messages',
  properties: {
    topic: p.text().primary(),
    position: p.bigint().$type<string>().primary().autoincrement().generated('identity'),
    key: p.text(),
    value: p.blob().$type<Uint8Array>().nullable(),
    headers: p.json().$type<Record<string, string>>(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/** The offset up to which a consumer group has processed a topic of the embedded bus: everything up to `position`. */
export const BusOffset = defineEntity({
  name: 'BusOffset',
  tableName: 'bus_offsets',
  properties: {
    groupId: p.text().primary(),
    topic: p.text().primary(),
    position: p.bigint().$type<string>(),
  },
});

/**
 * An event in the outbox, written in the transaction of the change that it announces and deleted once it is published.
 */
export const OutboxEvent = defineEntity({
  name: 'OutboxEvent',
  tableName: 'outbox',
  properties: {
    id: p.uuid().primary(),
    seq: p.bigint().$type<string>().autoincrement().generated('identity').unique(),
    topic: p.text(),
    key: p.text(),
    eventType: p.text(),
    payload: p.text(),
    correlationId: p.text(),
    traceparent: p.text().nullable(),
    createdAt: p.datetime(6).$type<string>(),
  },
});
