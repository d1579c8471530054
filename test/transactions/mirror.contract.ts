import { describe, expect, it } from 'vitest';
import { PoisonError } from '../../src/events/bus/event-bus.ts';
import { collectionsOf, topicOf } from '../../src/features/transactions/type-codes.rules.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
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
  transactionOf,
  USER,
  useMirror,
} from '../support/transactions/fixture.ts';

/** What applying promises on every database. */
export function mirrorContract(database: Database): void {
  const fixture = useMirror(database);

  describe('applying notifications', () => {
    it.each(TRANSACTION_COLLECTIONS)(
      '3-04: a notification sets status, hash and error of the %s transaction with its id',
      async (of) => {
        const { mirror } = fixture;
        const transaction = transactionOf(fixture, { collection: of, type: 7 });
        await mirror.register(transaction);
        expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: null, type: 7 });
        const told = { id: transaction.id, status: 4, type: 3, transaction_hash: '0xh', error: 'reverted' };
        await mirror.applyBatch(topicOf(of), [delivery({ ...told, gas_used: 5, contract_address: '0xc' })]);
        expect(await rowOf(fixture, transaction.id)).toMatchObject({
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
      const transaction = transactionOf(fixture);
      await fixture.mirror.register(transaction);
      const body = `{"id":"${transaction.id}","type":1,"status":2,"gas_used":18446744073709551615,
        "created_at":"0001-01-01T00:00:00Z","updated_at":"2026-11-21T10:30:00.123456789"}`;
      await fixture.mirror.applyBatch(ADMIN, [{ body: Buffer.from(body), correlationId: '' }]);
      expect(await rowOf(fixture, transaction.id)).toMatchObject({
        gas_used: '18446744073709551615',
        created_seconds: '-62135596800',
        updated_text: '2026-11-21T10:30:00.123456789',
        updated_nanos: 123456789,
      });
    });

    it('6-01: a consumer group applies only its own collections', async () => {
      for (const collection of TRANSACTION_COLLECTIONS) {
        const transaction = transactionOf(fixture, { collection });
        await fixture.mirror.registerByOwner(transaction);
        const [own, other] = collectionsOf(ADMIN).includes(collection) ? [ADMIN, USER] : [USER, ADMIN];
        await fixture.mirror.applyBatch(other, [delivery({ id: transaction.id, status: 3 })]);
        expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: null });
        expect(await parkedOf(fixture, transaction.id)).toBe(0);
        await fixture.mirror.applyBatch(own, [delivery({ id: transaction.id, status: 3 })]);
        expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: 3 });
      }
    });

    it('3-02 D6-05: a PendingReceipt does not change a user transaction', async () => {
      const transaction = transactionOf(fixture, { collection: 'user_transactions' });
      await fixture.mirror.register(transaction);
      await fixture.mirror.applyBatch(USER, [delivery({ id: transaction.id, status: 2 })]);
      const before = await rowOf(fixture, transaction.id);
      await fixture.mirror.applyBatch(USER, [delivery({ id: transaction.id, status: 5, transaction_hash: '0xh' })]);
      expect(await rowOf(fixture, transaction.id)).toEqual(before);
      expect(await eventsOf(fixture, transaction.id)).toHaveLength(1);
    });

    it('D6-01: a type code that is unknown in its collection is stored', async () => {
      const transaction = transactionOf(fixture, { collection: 'user_transactions', type: 999 });
      await fixture.mirror.register(transaction);
      await fixture.mirror.applyBatch(USER, [delivery({ id: transaction.id, status: 3, type: -7 })]);
      expect(await rowOf(fixture, transaction.id)).toMatchObject({ type: -7, registered_type: 999 });
    });

    it.each([
      ['Done, then Error', [3, 4]],
      ['Error, then Done', [4, 3]],
    ])('D6-04: a transaction with both Done and Error is reported once as a conflict: %s', async (_order, statuses) => {
      const conflicts: string[] = [];
      const mirror = mirrorOn(fixture.db, [], conflicts);
      const transaction = transactionOf(fixture);
      await mirror.register(transaction);
      for (const status of [...statuses, ...statuses]) {
        await mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status })]);
      }
      expect(conflicts).toEqual([transaction.id]);
    });

    it('D6-18: a malformed notification is a PoisonError, and nothing of its batch is applied', async () => {
      const transaction = transactionOf(fixture);
      await fixture.mirror.register(transaction);
      const good = delivery({ id: transaction.id, status: 3 });
      const bad = { body: Buffer.from('{"id":'), correlationId: '' };
      await expect(fixture.mirror.applyBatch(ADMIN, [good, bad])).rejects.toThrow(PoisonError);
      expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: null });
    });
  });

  describe('the event log', () => {
    it('D6-17: each visible change is one event, numbered per node from 1 without gaps', async () => {
      const [mine, other] = fixture.nodeIds;
      const first = transactionOf(fixture, { nodeId: mine });
      const second = transactionOf(fixture, { nodeId: other });
      await fixture.mirror.register(first);
      await fixture.mirror.register(second);
      const before = { mine: await logOf(fixture, mine), other: await logOf(fixture, other) };
      fixture.woken.length = 0;
      const batch = [
        delivery({ id: first.id, status: 1 }),
        delivery({ id: second.id, status: 2 }),
        delivery({ id: first.id, status: 1 }),
        delivery({ id: first.id, status: 3, second: 1 }),
        delivery({ id: first.id, status: 2, second: 2 }),
      ];
      await fixture.mirror.applyBatch(ADMIN, batch);
      await fixture.mirror.applyBatch(ADMIN, batch.toReversed());
      const after = { mine: await logOf(fixture, mine), other: await logOf(fixture, other) };
      expect(after.mine.counter).toBe(before.mine.counter + 2);
      expect(after.other.counter).toBe(before.other.counter + 1);
      expect(await eventsOf(fixture, first.id)).toMatchObject([
        { node_id: mine, status: 1, previous_status: null, correlation_id: `c-${first.id}-1-0` },
        { node_id: mine, status: 3, previous_status: 1, transaction: { id: first.id, status: 3, conflict: false } },
      ]);
      expect(new Set(fixture.woken)).toEqual(
        new Set([
          { nodeId: mine, seq: BigInt(after.mine.counter) },
          { nodeId: other, seq: BigInt(after.other.counter) },
        ]),
      );
      for (const nodeId of fixture.nodeIds) {
        const { seqs, counter } = await logOf(fixture, nodeId);
        expect(seqs).toEqual(seqs.map((_, at) => at + 1));
        expect(seqs.at(-1)).toBe(counter);
      }
    });
  });

  describe('the effect on assets', () => {
    it('D6-08: a Done CreateTokenization gives its asset the contract address', async () => {
      const asset = await newAsset(fixture);
      const transaction = transactionOf(fixture, { assetId: asset });
      await fixture.mirror.register(transaction);
      await fixture.mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status: 5, contract_address: '0xc' })]);
      expect(await assetAddress(fixture, asset)).toBe(null);
      await fixture.mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status: 3 })]);
      expect(await assetAddress(fixture, asset)).toBe('0xc');
    });

    it('D4-01 D6-08: a transaction of another node does not change an asset', async () => {
      const asset = await newAsset(fixture);
      const foreign = transactionOf(fixture, { nodeId: fixture.nodeIds[1], assetId: asset });
      await fixture.mirror.register(foreign);
      await fixture.mirror.applyBatch(ADMIN, [delivery({ id: foreign.id, status: 3, contract_address: '0xevil' })]);
      expect(await assetAddress(fixture, asset)).toBe(null);
    });
  });
}
