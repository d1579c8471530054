import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EmbeddedDatabase, embeddedDatabase } from '../harness/databases.ts';
import { delivery, mirrorOn, type Stand, standOn, transactionOf } from './stand.ts';

let database: EmbeddedDatabase;
let stand: Stand;

beforeAll(async () => {
  database = await embeddedDatabase();
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
