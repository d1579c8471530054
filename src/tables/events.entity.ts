import { defineEntity, p } from '@mikro-orm/core';

/** A message of the embedded bus. Positions rise in commit order: the embedded database has one connection. */
export const BusMessage = defineEntity({
  name: 'BusMessage',
  tableName: 'bus_messages',
  properties: {
    topic: p.text().primary(),
    position: p.bigint().$type<string>().primary().autoincrement(),
    key: p.text(),
    value: p.blob().$type<Uint8Array>().nullable(),
    headers: p.json().$type<Record<string, string>>(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/** How far a consumer group has read a topic of the embedded bus: everything up to `position` has taken effect. */
export const BusOffset = defineEntity({
  name: 'BusOffset',
  tableName: 'bus_offsets',
  properties: {
    groupId: p.text().primary(),
    topic: p.text().primary(),
    position: p.bigint().$type<string>(),
  },
});

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
