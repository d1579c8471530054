import { beforeAll, describe, expect, it } from 'vitest';
import { PoisonError } from '../../src/events/bus/dead-letters.ts';
import { collectionsOf, topicOf } from '../../src/features/transactions/type-codes.rules.ts';
import type { Database } from '../../src/platform/database/database.ts';
import { TRANSACTION_COLLECTIONS } from '../../src/tables/transaction-content.ts';
import {
  ADMIN,
  assetAddress,
  delivery,
  eventsOf,
  logOf,
  mirrorOn,
  newAsset,
  parkedOf,
  rowOf,
  type Stand,
  standOn,
  transactionOf,
  USER,
} from '../support/transactions/stand.ts';

/** What applying promises on every database. */
export function mirrorContract(database: Database): void {
  let stand: Stand;

  beforeAll(async () => {
    stand = await standOn(database);
  });

  describe('applying notifications', () => {
    it.each(TRANSACTION_COLLECTIONS)(
      '3-04: a notification sets status, hash and error of the %s transaction with its id',
      async (of) => {
        const { mirror } = stand;
        const transaction = transactionOf(stand, { collection: of, type: 7 });
        await mirror.register(transaction);
        expect(await rowOf(stand, transaction.id)).toMatchObject({ status: null, type: 7 });
        const told = { id: transaction.id, status: 4, type: 3, transaction_hash: '0xh', error: 'reverted' };
        await mirror.applyBatch(topicOf(of), [delivery({ ...told, gas_used: 5, contract_address: '0xc' })]);
        expect(await rowOf(stand, transaction.id)).toMatchObject({
          status: 4,
          type: 3,
          registered_type: 7,
          transaction_hash: '0xh',
          error: 'reverted',
          gas_used: '5',
          contract_address: '0xc',
          node_id: transaction.nodeId,
          collection: of,
        });
      },
    );

    it('2.7-05: the maximum gas_used and a time without an offset are stored exactly', async () => {
      const transaction = transactionOf(stand);
      await stand.mirror.register(transaction);
      const body = `{"id":"${transaction.id}","type":1,"status":2,"gas_used":18446744073709551615,
        "created_at":"0001-01-01T00:00:00Z","updated_at":"2026-11-21T10:30:00.123456789"}`;
      await stand.mirror.applyBatch(ADMIN, [{ body: Buffer.from(body), correlationId: '' }]);
      expect(await rowOf(stand, transaction.id)).toMatchObject({
        gas_used: '18446744073709551615',
        created_seconds: '-62135596800',
        updated_text: '2026-11-21T10:30:00.123456789',
        updated_nanos: 123456789,
      });
    });

    it('6-01: a consumer group applies only its own collections', async () => {
      for (const collection of TRANSACTION_COLLECTIONS) {
        const transaction = transactionOf(stand, { collection });
        await stand.mirror.registerByOwner(transaction);
        const [own, other] = collectionsOf(ADMIN).includes(collection) ? [ADMIN, USER] : [USER, ADMIN];
        await stand.mirror.applyBatch(other, [delivery({ id: transaction.id, status: 3 })]);
        expect(await rowOf(stand, transaction.id)).toMatchObject({ status: null });
        expect(await parkedOf(stand, transaction.id)).toBe(0);
        await stand.mirror.applyBatch(own, [delivery({ id: transaction.id, status: 3 })]);
        expect(await rowOf(stand, transaction.id)).toMatchObject({ status: 3 });
      }
    });

    it('3-02 D6-05: a PendingReceipt does not change a user transaction', async () => {
      const transaction = transactionOf(stand, { collection: 'user_transactions' });
      await stand.mirror.register(transaction);
      await stand.mirror.applyBatch(USER, [delivery({ id: transaction.id, status: 2 })]);
      const before = await rowOf(stand, transaction.id);
      await stand.mirror.applyBatch(USER, [delivery({ id: transaction.id, status: 5, transaction_hash: '0xh' })]);
      expect(await rowOf(stand, transaction.id)).toEqual(before);
      expect(await eventsOf(stand, transaction.id)).toHaveLength(1);
    });

    it('D6-01: a type code that is unknown in its collection is stored', async () => {
      const transaction = transactionOf(stand, { collection: 'user_transactions', type: 999 });
      await stand.mirror.register(transaction);
      await stand.mirror.applyBatch(USER, [delivery({ id: transaction.id, status: 3, type: -7 })]);
      expect(await rowOf(stand, transaction.id)).toMatchObject({ type: -7, registered_type: 999 });
    });

    it.each([
      ['Done, then Error', [3, 4]],
      ['Error, then Done', [4, 3]],
    ])('D6-04: a transaction with both Done and Error is reported once as a conflict: %s', async (_order, statuses) => {
      const conflicts: string[] = [];
      const mirror = mirrorOn(stand.db, [], conflicts);
      const transaction = transactionOf(stand);
      await mirror.register(transaction);
      for (const status of [...statuses, ...statuses]) {
        await mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status })]);
      }
      expect(conflicts).toEqual([transaction.id]);
    });

    it('D6-18: a malformed notification is a PoisonError, and nothing of its batch is applied', async () => {
      const transaction = transactionOf(stand);
      await stand.mirror.register(transaction);
      const good = delivery({ id: transaction.id, status: 3 });
      const bad = { body: Buffer.from('{"id":'), correlationId: '' };
      await expect(stand.mirror.applyBatch(ADMIN, [good, bad])).rejects.toThrow(PoisonError);
      expect(await rowOf(stand, transaction.id)).toMatchObject({ status: null });
    });
  });

  describe('the event log', () => {
    it('D6-17: each visible change is one event, numbered per node from 1 without gaps', async () => {
      const [mine, other] = stand.nodeIds;
      const first = transactionOf(stand, { nodeId: mine });
      const second = transactionOf(stand, { nodeId: other });
      await stand.mirror.register(first);
      await stand.mirror.register(second);
      const before = { mine: await logOf(stand, mine), other: await logOf(stand, other) };
      stand.woken.length = 0;
      const batch = [
        delivery({ id: first.id, status: 1 }),
        delivery({ id: second.id, status: 2 }),
        delivery({ id: first.id, status: 1 }),
        delivery({ id: first.id, status: 3, second: 1 }),
        delivery({ id: first.id, status: 2, second: 2 }),
      ];
      await stand.mirror.applyBatch(ADMIN, batch);
      await stand.mirror.applyBatch(ADMIN, batch.toReversed());
      const after = { mine: await logOf(stand, mine), other: await logOf(stand, other) };
      expect(after.mine.counter).toBe(before.mine.counter + 2);
      expect(after.other.counter).toBe(before.other.counter + 1);
      expect(await eventsOf(stand, first.id)).toMatchObject([
        { node_id: mine, status: 1, previous_status: null, correlation_id: `c-${first.id}-1-0` },
        { node_id: mine, status: 3, previous_status: 1, transaction: { id: first.id, status: 3, conflict: false } },
      ]);
      expect(new Set(stand.woken)).toEqual(
        new Set([
          { nodeId: mine, seq: BigInt(after.mine.counter) },
          { nodeId: other, seq: BigInt(after.other.counter) },
        ]),
      );
      for (const nodeId of stand.nodeIds) {
        const { seqs, counter } = await logOf(stand, nodeId);
        expect(seqs).toEqual(seqs.map((_, at) => at + 1));
        expect(seqs.at(-1)).toBe(counter);
      }
    });
  });

  describe('the effect on assets', () => {
    it('D6-08: a Done CreateTokenization gives its asset the contract address', async () => {
      const asset = await newAsset(stand);
      const transaction = transactionOf(stand, { assetId: asset });
      await stand.mirror.register(transaction);
      await stand.mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status: 5, contract_address: '0xc' })]);
      expect(await assetAddress(stand, asset)).toBe(null);
      await stand.mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status: 3 })]);
      expect(await assetAddress(stand, asset)).toBe('0xc');
    });

    it('D4-01 D6-08: a transaction of another node does not change an asset', async () => {
      const asset = await newAsset(stand);
      const foreign = transactionOf(stand, { nodeId: stand.nodeIds[1], assetId: asset });
      await stand.mirror.register(foreign);
      await stand.mirror.applyBatch(ADMIN, [delivery({ id: foreign.id, status: 3, contract_address: '0xevil' })]);
      expect(await assetAddress(stand, asset)).toBe(null);
    });
  });
}
