import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/database.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { delivery, mirrorOn, type Stand, standOn, transactionOf } from '../support/transactions/stand.ts';

let database: Database;
let stand: Stand;

beforeAll(async () => {
  database = await scratchDatabase();
  stand = await standOn(database);
});

afterAll(() => database[Symbol.asyncDispose]());

describe('a transaction that was told to be done and to have failed', () => {
  it.each([
    ['Done, then Error', [3, 4]],
    ['Error, then Done', [4, 3]],
  ])('D6-04: is reported once: %s', async (_order, statuses) => {
    const conflicts: string[] = [];
    const mirror = mirrorOn(stand.db, [], conflicts);
    const transaction = transactionOf(stand);
    await mirror.register(transaction);
    for (const status of [...statuses, ...statuses]) {
      await mirror.applyBatch('transactions.admin', [delivery({ id: transaction.id, status })]);
    }
    expect(conflicts).toEqual([transaction.id]);
  });
});
