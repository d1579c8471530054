import { defineEntity, p } from '@mikro-orm/core';

/** A tenant. Every row with a `nodeId` belongs to one. */
export const Node = defineEntity({
  name: 'Node',
  tableName: 'nodes',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    version: p.bigint().$type<string>().defaultRaw('0'),
  },
});

/** A blockchain, such as Ethereum. A wallet is on one chain and can be assigned each of its networks. */
export const Chain = defineEntity({
  name: 'Chain',
  tableName: 'chains',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    version: p.bigint().$type<string>().defaultRaw('0'),
  },
});

/** A network of a chain; all tenants share it. */
export const Network = defineEntity({
  name: 'Network',
  tableName: 'networks',
  properties: {
    id: p.uuid().primary(),
    chainId: p.manyToOne(Chain).fieldName('chain_id').index('networks_of_chain'),
    name: p.text(),
    /** The URL of a transaction in a block explorer, with `{hash}` in place of the hash. */
    explorerUrl: p.text().nullable(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    version: p.bigint().$type<string>().defaultRaw('0'),
  },
  indexes: [{ name: 'networks_page', properties: ['createdAt', 'id'] }],
});

/** A currency on a network; all tenants share it. */
export const NetworkCurrency = defineEntity({
  name: 'NetworkCurrency',
  tableName: 'network_currencies',
  properties: {
    id: p.uuid().primary(),
    networkId: p.manyToOne(Network).fieldName('network_id').index('network_currencies_of_network'),
    symbol: p.text(),
    name: p.text().nullable(),
    decimals: p.integer().nullable(),
    version: p.bigint().$type<string>().defaultRaw('0'),
  },
  indexes: [{ name: 'network_currencies_page', properties: ['symbol', 'id'] }],
});

/**
 * The deletion of a row of reference data by a tombstone: versions up to `version` are ignored from then on.
 * `logOffset` and `logTimeMs` are the tombstone's offset and timestamp (milliseconds since 1970) in its topic, if
 * known.
 */
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

/**
 * A row of reference data that cannot be applied: its parent does not exist yet (`waitsForKind`, `waitsForId`), or the
 * parent turned out to make the row invalid (`reason`).
 */
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
  indexes: [
    { name: 'reference_parked_waiting', properties: ['waitsForKind', 'waitsForId'], where: 'waits_for_id is not null' },
  ],
});
