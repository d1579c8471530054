import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { REFERENCE_KINDS } from '../../src/events/bus/topics.ts';
import type { ReferenceChange } from '../../src/features/reference/reference.rules.ts';
import { Transactions } from '../../src/features/transactions/transactions.service.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { type Fixture, fixtureOn, NOW, newFamily, rowOf, stateOf, tombstone } from '../support/reference/fixture.ts';
import { describeReal } from '../support/services/real.ts';

describeReal('postgres', 'reference data from several replicas at once', () => {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = fixtureOn(await realDatabase());
  });
  afterAll(() => fixture.database[Symbol.asyncDispose]());

  /** Each change on its own, all at once, as consumers of several topics and partitions apply them. */
  const atOnce = (changes: readonly ReferenceChange[]) =>
    Promise.all(changes.map((change) => fixture.reference.apply([change])));

  it('D1-10: parents and children that arrive concurrently are all stored', async () => {
    for (let round = 0; round < 25; round += 1) {
      const { all, ids } = newFamily();
      await atOnce([...all(1), ...all(2)].toSorted((a, b) => (a.id < b.id ? -1 : 1)));
      const state = await stateOf(fixture, Object.values(ids));
      for (const kind of REFERENCE_KINDS) expect(state[kind]).toMatchObject([{ id: ids[kind], version: '2' }]);
      expect(state.parked).toEqual([]);
    }
  });

  it('D1-10: the same rows in concurrent batches, in opposite orders, end at the highest version', async () => {
    const families = Array.from({ length: 40 }, () => newFamily());
    await fixture.reference.apply(families.flatMap(({ all }) => all(1)));
    const batches = [2, 3, 4, 5].map((number) => {
      const rows = families.map(({ version }) => version('accounts', number));
      return number % 2 === 0 ? rows : rows.toReversed();
    });
    await Promise.all(batches.map((batch) => fixture.reference.apply(batch)));
    for (const { ids } of families)
      expect(await rowOf(fixture, 'accounts', ids.accounts)).toMatchObject({ version: '5' });
  });

  it('D1-10: a tombstone and older versions that arrive concurrently leave no row', async () => {
    for (let round = 0; round < 15; round += 1) {
      const { all, version, ids } = newFamily();
      await fixture.reference.apply(all(5));
      await atOnce([version('wallets', 4), tombstone('wallets', ids.wallets), version('wallets', 5)]);
      expect(await rowOf(fixture, 'wallets', ids.wallets)).toBeUndefined();
    }
  });

  it('D6-08: an asset that arrives together with the transaction that tokenizes it gets the contract address', async () => {
    const transactions = new Transactions({ db: fixture.db, wake: () => undefined });
    for (let round = 0; round < 25; round += 1) {
      const { all, version, ids } = newFamily();
      await fixture.reference.apply(all().filter(({ kind }) => kind !== 'assets'));
      const id = randomUUID();
      const assetId = ids.assets;
      await transactions.register({ id, nodeId: ids.nodes, collection: 'token_transactions', type: 1, assetId });
      const told = { id, type: 1, status: 3, contract_address: '0xC0', created_at: NOW, updated_at: NOW };
      const body = Buffer.from(JSON.stringify(told));
      await Promise.all([
        transactions.applyBatch('transactions.admin', [{ body, correlationId: 'c' }]),
        fixture.reference.apply([version('assets', 1)]),
      ]);
      expect(await rowOf(fixture, 'assets', assetId)).toMatchObject({ contract_address: '0xC0' });
    }
  });
});
