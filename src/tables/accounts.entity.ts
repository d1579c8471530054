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

const counts = {
  nodeId: p.uuid().primary(),
  startAt: p.datetime(6).$type<string>().primary(),
  startId: p.uuid().primary(),
  live: p.integer(),
  total: p.integer(),
};

/**
 * Up to some 256 accounts that follow each other in the list, from a place up to the next block's: how many there are
 * and how many are not deleted. Kept by triggers.
 */
export const AccountBlock = defineEntity({ name: 'AccountBlock', tableName: 'account_blocks', properties: counts });

/** Up to some 128 blocks that follow each other. */
export const AccountSuperblock = defineEntity({
  name: 'AccountSuperblock',
  tableName: 'account_superblocks',
  properties: counts,
});

/** A change that its writer could not count at once, since another one was counting: it counts where it stands. */
export const AccountChange = defineEntity({
  name: 'AccountChange',
  tableName: 'account_changes',
  properties: {
    nodeId: p.uuid().primary(),
    at: p.datetime(6).$type<string>().primary(),
    id: p.uuid().primary(),
    live: p.integer(),
    total: p.integer(),
  },
});
