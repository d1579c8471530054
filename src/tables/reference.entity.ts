import { defineEntity, p } from '@mikro-orm/core';

/** A tenant: everything that belongs to someone belongs to a node. */
export const Node = defineEntity({
  name: 'Node',
  tableName: 'nodes',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    version: p.bigint().$type<string>().default('0'),
  },
});

/** A blockchain; wallets live on one, and each of its networks can be assigned to them. */
export const Chain = defineEntity({
  name: 'Chain',
  tableName: 'chains',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    version: p.bigint().$type<string>().default('0'),
  },
});

/** A network of a chain, global to all nodes. */
export const Network = defineEntity({
  name: 'Network',
  tableName: 'networks',
  properties: {
    id: p.uuid().primary(),
    chainId: p.uuid(),
    name: p.text(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    version: p.bigint().$type<string>().default('0'),
  },
});

/** A currency on a network. */
export const NetworkCurrency = defineEntity({
  name: 'NetworkCurrency',
  tableName: 'network_currencies',
  properties: {
    id: p.uuid().primary(),
    networkId: p.uuid(),
    symbol: p.text(),
    version: p.bigint().$type<string>().default('0'),
  },
});

/** What a tombstone has deleted: no version up to `version` comes back. The place in the log is that of its topic. */
export const ReferenceTombstone = defineEntity({
  name: 'ReferenceTombstone',
  tableName: 'reference_tombstones',
  properties: {
    kind: p.text().primary(),
    id: p.uuid().primary(),
    version: p.bigint().$type<string>(),
    logOffset: p.bigint().$type<string>().nullable(),
    logTimeMs: p.bigint().$type<string>().nullable(),
  },
});

/** A row that waits for its parent, or, with a reason, that its parent has shown to be impossible. */
export const ReferenceParked = defineEntity({
  name: 'ReferenceParked',
  tableName: 'reference_parked',
  properties: {
    kind: p.text().primary(),
    id: p.uuid().primary(),
    version: p.bigint().$type<string>(),
    value: p.json().$type<Record<string, string | number | null>>(),
    waitsForKind: p.text().nullable(),
    waitsForId: p.uuid().nullable(),
    reason: p.text().nullable(),
  },
});
