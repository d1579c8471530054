import { defineEntity, p } from '@mikro-orm/core';
import { ofNode } from './references.ts';

/**
 * An account of a tenant (docs/contract.md, 2.5-01). `type` may be any text and `status` any integer; 1 means active,
 * 2 suspended, 3 closed.
 */
export const Account = defineEntity({
  name: 'Account',
  tableName: 'accounts',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
    name: p.text(),
    type: p.text(),
    status: p.integer(),
    createdAt: p.datetime(6).$type<string>(),
    updatedAt: p.datetime(6).$type<string>(),
    deletedAt: p.datetime(6).$type<string>().nullable(),
    version: p.bigint().$type<string>().defaultRaw('0'),
  },
  uniques: [{ properties: ['nodeId', 'id'] }],
  indexes: [
    { name: 'accounts_page', properties: ['nodeId', 'createdAt', 'id'] },
    { name: 'accounts_live_page', properties: ['nodeId', 'createdAt', 'id'], where: 'deleted_at is null' },
  ],
});

const counts = {
  nodeId: ofNode().deleteRule('cascade').primary(),
  startAt: p.datetime(6).$type<string>().primary(),
  startId: p.uuid().primary(),
  live: p.integer(),
  total: p.integer(),
};

/**
 * A block of about 256 consecutive accounts at most, from a sort key up to the next block's: the number of all of
 * them and of those that are not deleted. Triggers maintain these counts.
 */
export const AccountBlock = defineEntity({ name: 'AccountBlock', tableName: 'account_blocks', properties: counts });

/** The counts of about 128 consecutive account blocks at most, which triggers maintain. */
export const AccountSuperblock = defineEntity({
  name: 'AccountSuperblock',
  tableName: 'account_superblocks',
  properties: counts,
});

/**
 * A change of the account counts that is not in its block yet, because another transaction was updating the blocks.
 * Readers add these rows to the counts; the next writer moves them into the blocks.
 */
export const AccountChange = defineEntity({
  name: 'AccountChange',
  tableName: 'account_changes',
  properties: {
    nodeId: ofNode().deleteRule('cascade').primary(),
    at: p.datetime(6).$type<string>().primary(),
    id: p.uuid().primary(),
    live: p.integer(),
    total: p.integer(),
  },
  indexes: [{ name: 'account_changes_of_node', properties: ['nodeId', 'at', 'id'] }],
});
