import { defineEntity, p } from '@mikro-orm/core';

/**
 * A tokenized asset. `contractSettled` is whether `contractAddress` comes from a notification rather than from
 * reference data.
 */
export const Asset = defineEntity({
  name: 'Asset',
  tableName: 'assets',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    name: p.text(),
    symbol: p.text(),
    type: p.text(),
    networkId: p.uuid(),
    contractAddress: p.text().nullable(),
    contractSettled: p.boolean().default(false),
    status: p.text(),
    createdAt: p.datetime(6).$type<string>(),
    updatedAt: p.datetime(6).$type<string>(),
    version: p.bigint().$type<string>().default('0'),
  },
});
