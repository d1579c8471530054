import { defineEntity, p } from '@mikro-orm/core';
import { Network } from './reference.entity.ts';
import { ofNode } from './references.ts';

/**
 * A tokenized asset. `contractSettled` is whether `contractAddress` comes from a notification rather than from
 * reference data.
 */
export const Asset = defineEntity({
  name: 'Asset',
  tableName: 'assets',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
    name: p.text(),
    symbol: p.text(),
    type: p.text(),
    networkId: p.manyToOne(Network).fieldName('network_id').index('assets_of_network'),
    contractAddress: p.text().nullable(),
    contractSettled: p.boolean().default(false),
    status: p.text(),
    createdAt: p.datetime(6).$type<string>(),
    updatedAt: p.datetime(6).$type<string>(),
    version: p.bigint().$type<string>().defaultRaw('0'),
  },
  uniques: [{ properties: ['nodeId', 'id'] }],
  indexes: [{ name: 'assets_page', properties: ['nodeId', 'createdAt', 'id'] }],
});
