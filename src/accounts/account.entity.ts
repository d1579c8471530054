import { defineEntity, p } from '@mikro-orm/core';

/** An account of a node (specification section 2.5). `type` and `status` are open: 1 active, 2 suspended, 3 closed. */
export const Account = defineEntity({
  name: 'Account',
  tableName: 'accounts',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    name: p.text(),
    type: p.text(),
    status: p.integer(),
    createdAt: p.datetime(6).$type<string>(),
    updatedAt: p.datetime(6).$type<string>(),
    deletedAt: p.datetime(6).$type<string>().nullable(),
    version: p.bigint().$type<string>().default('0'),
  },
});
