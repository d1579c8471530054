import { defineEntity, p } from '@mikro-orm/core';

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
