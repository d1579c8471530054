import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { REFERENCE_KINDS } from '../../src/events/bus/topics.ts';
import type { ReferenceChange } from '../../src/features/reference/reference.rules.ts';
import { Transactions } from '../../src/features/transactions/transactions.service.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import {
  type Fixture,
  fixtureOn,
  NOW,
  newFamily,
  put,
  rowOf,
  stateOf,
  tombstone,
} from '../support/reference/fixture.ts';
import { describeReal } from '../support/services/real.ts';

describeEmbedded('reference data on the embedded database', () => applySuite(embeddedDatabase));
describeReal('postgres', 'reference data on PostgreSQL', () => applySuite(realDatabase));

function applySuite(open: () => Promise<Database>): void {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = fixtureOn(await open());
  });
  afterAll(() => fixture.database[Symbol.asyncDispose]());

  it('D1-10: a row of every kind is stored, and the same rows again change nothing', async () => {
    const { all, ids } = newFamily();
    expect(await fixture.reference.apply(all())).toEqual({ applied: 7, parked: 0, rejected: [] });
    const before = await stateOf(fixture, Object.values(ids));
    for (const kind of REFERENCE_KINDS) expect(before[kind]).toMatchObject([{ id: ids[kind], version: '1' }]);
    expect(await fixture.reference.apply(all())).toEqual({ applied: 0, parked: 0, rejected: [] });
    expect(await stateOf(fixture, Object.values(ids))).toEqual(before);
  });

  it('D1-10: the higher version wins, in any order', async () => {
    const { all, version, ids } = newFamily();
    await fixture.reference.apply(all());
    await fixture.reference.apply([version('accounts', 3, { name: 'third' })]);
    await fixture.reference.apply([version('accounts', 2, { name: 'second' })]);
    expect(await rowOf(fixture, 'accounts', ids.accounts)).toMatchObject({ name: 'third', version: '3' });
    await fixture.reference.apply([
      version('accounts', 5, { name: 'fifth' }),
      version('accounts', 4, { name: 'fourth' }),
    ]);
    expect(await rowOf(fixture, 'accounts', ids.accounts)).toMatchObject({ name: 'fifth', version: '5' });
  });

  it('D1-10: rows of any kinds, in any order, repeated and in any batches, end in the same state', async () => {
    const shape = fc.record({
      order: fc.shuffledSubarray(
        Array.from({ length: 42 }, (_, at) => at),
        { minLength: 42 },
      ),
      cuts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(shape, async ({ order, cuts }) => {
        const family = newFamily();
        const changes = REFERENCE_KINDS.flatMap((kind) =>
          [1, 2, 3].map((number) => family.version(kind, number, kind === 'currencies' ? { symbol: `${number}` } : {})),
        );
        const twice = [...changes, ...changes];
        const given = order.map((at) => twice[at]).filter((change) => change !== undefined);
        for (let start = 0, step = 0; start < given.length; step += 1) {
          const size = cuts[step % cuts.length] ?? 1;
          expect((await fixture.reference.apply(given.slice(start, start + size))).rejected).toEqual([]);
          start += size;
        }
        const state = await stateOf(fixture, Object.values(family.ids));
        for (const kind of REFERENCE_KINDS) expect(state[kind]).toMatchObject([{ id: family.ids[kind], version: '3' }]);
        expect(state.parked).toEqual([]);
      }),
      { numRuns: 8 },
    );
  });

  it('D1-10: a child that arrives before its parents waits, and is stored with the last of them', async () => {
    const { version, ids } = newFamily();
    const late = ['wallets', 'assets', 'currencies', 'networks', 'accounts', 'nodes'] as const;
    for (const kind of late) {
      const { applied, parked } = await fixture.reference.apply([version(kind, 1)]);
      // The node brings its account along; wallet and asset go on waiting.
      expect([kind, applied, parked]).toEqual([kind, kind === 'nodes' ? 2 : 0, kind === 'nodes' ? 2 : 1]);
    }
    expect(await rowOf(fixture, 'wallets', ids.wallets)).toBeUndefined();
    await fixture.reference.apply([version('chains', 1)]);
    const state = await stateOf(fixture, Object.values(ids));
    for (const kind of REFERENCE_KINDS) expect(state[kind]).toHaveLength(1);
    expect(state.parked).toEqual([]);
  });

  it('D1-10: of several versions of a waiting row, the highest is applied', async () => {
    const { version, ids } = newFamily();
    await fixture.reference.apply([version('networks', 2, { name: 'second' })]);
    await fixture.reference.apply([version('networks', 3, { name: 'third' })]);
    await fixture.reference.apply([version('networks', 1, { name: 'first' })]);
    await fixture.reference.apply([version('chains', 1)]);
    expect(await rowOf(fixture, 'networks', ids.networks)).toMatchObject({ name: 'third', version: '3' });
  });

  it('D1-10: a tombstone deletes the row; for an account it sets deleted_at, once', async () => {
    const { all, ids } = newFamily();
    await fixture.reference.apply(all());
    await fixture.reference.apply([tombstone('accounts', ids.accounts), tombstone('wallets', ids.wallets)]);
    await fixture.reference.apply([tombstone('accounts', ids.accounts), tombstone('assets', ids.assets)]);
    expect(await rowOf(fixture, 'accounts', ids.accounts)).toMatchObject({ deleted_at: '2026-11-21 12:00:00+00' });
    expect(await rowOf(fixture, 'wallets', ids.wallets)).toBeUndefined();
    expect(await rowOf(fixture, 'assets', ids.assets)).toBeUndefined();
  });

  it('D1-10: an account is the same whether its row and its tombstone arrive in one batch or two', async () => {
    const [together, apart] = [newFamily(), newFamily()];
    for (const { all, ids, version } of [together, apart]) {
      await fixture.reference.apply(all().filter(({ kind }) => kind !== 'accounts'));
      const changes = [version('accounts', 1, { name: 'first' }), tombstone('accounts', ids.accounts)];
      for (const batch of ids === together.ids ? [changes] : changes.map((change) => [change])) {
        await fixture.reference.apply(batch);
      }
      expect(await rowOf(fixture, 'accounts', ids.accounts)).toMatchObject({
        ...{ name: 'first', version: '1', deleted_at: '2026-11-21 12:00:00+00' },
      });
    }
    await fixture.reference.apply([
      together.version('accounts', 2, { name: 'second' }),
      tombstone('accounts', together.ids.accounts),
      together.version('accounts', 3, { name: 'third' }),
    ]);
    expect(await rowOf(fixture, 'accounts', together.ids.accounts)).toMatchObject({ name: 'third', deleted_at: null });
  });

  it('D1-10: after a tombstone no earlier version is stored again; a higher one is', async () => {
    const { all, version, ids } = newFamily();
    await fixture.reference.apply(all(4));
    const dead = (['accounts', 'wallets', 'assets'] as const).map((kind) => tombstone(kind, ids[kind]));
    await fixture.reference.apply(dead);
    for (const number of [3, 4]) {
      await fixture.reference.apply((['accounts', 'wallets', 'assets'] as const).map((kind) => version(kind, number)));
    }
    expect(await rowOf(fixture, 'wallets', ids.wallets)).toBeUndefined();
    expect(await rowOf(fixture, 'assets', ids.assets)).toBeUndefined();
    expect((await rowOf(fixture, 'accounts', ids.accounts))?.deleted_at).not.toBeNull();
    await fixture.reference.apply((['accounts', 'wallets', 'assets'] as const).map((kind) => version(kind, 5)));
    for (const kind of ['accounts', 'wallets', 'assets'] as const) {
      expect(await rowOf(fixture, kind, ids[kind])).toMatchObject({ version: '5' });
    }
    expect((await rowOf(fixture, 'accounts', ids.accounts))?.deleted_at).toBeNull();
  });

  it('D1-10: a tombstone deletes a waiting row, which is not stored again', async () => {
    const { version, ids } = newFamily();
    await fixture.reference.apply([version('networks', 2)]);
    await fixture.reference.apply([tombstone('networks', ids.networks)]);
    await fixture.reference.apply([version('networks', 2), version('chains', 1)]);
    expect(await rowOf(fixture, 'networks', ids.networks)).toBeUndefined();
    expect((await stateOf(fixture, [ids.networks])).parked).toEqual([]);
  });

  it('D1-10: reading a log again ends in the same state: a repeated tombstone is not a new one', async () => {
    const { version, ids } = newFamily();
    const place = (offset: number) => ({ offset: BigInt(offset), timeMs: 1_000n });
    const log: ReferenceChange[] = [
      { ...version('chains', 1), position: place(1) },
      tombstone('chains', ids.chains, place(2)),
      { ...version('chains', 2), position: place(3) },
    ];
    for (const change of [...log, ...log]) await fixture.reference.apply([change]);
    expect(await rowOf(fixture, 'chains', ids.chains)).toMatchObject({ version: '2' });
    await fixture.reference.apply([tombstone('chains', ids.chains, place(4))]);
    expect(await rowOf(fixture, 'chains', ids.chains)).toBeUndefined();
  });

  it('D1-10: a row with references outlives its tombstone, and is deleted with the last of them', async () => {
    const { all, ids } = newFamily();
    await fixture.reference.apply(all());
    await fixture.reference.apply([tombstone('chains', ids.chains), tombstone('networks', ids.networks)]);
    expect(await rowOf(fixture, 'chains', ids.chains)).toBeDefined();
    await fixture.reference.apply([tombstone('wallets', ids.wallets)]);
    await fixture.reference.apply([tombstone('assets', ids.assets), tombstone('currencies', ids.currencies)]);
    expect(await rowOf(fixture, 'networks', ids.networks)).toBeUndefined();
    expect(await rowOf(fixture, 'chains', ids.chains)).toBeUndefined();
  });

  it('D1-10: deleting a wallet deletes its networks and rules', async () => {
    const { all, ids } = newFamily();
    await fixture.reference.apply(all());
    const [wallet, network, node] = [ids.wallets, ids.networks, ids.nodes];
    const rule = { id: randomUUID(), wallet_id: wallet, name: '', type: 'auto_transfer' as const, network_id: network };
    const door = fixture.db.forNode(node);
    await door.run((k) => k.insertInto('wallet_networks').values({ wallet_id: wallet, network_id: network }));
    const times = { created_at: NOW, updated_at: NOW };
    await door.run((k) =>
      k.insertInto('wallet_rules').values({ ...rule, ...times, network_currency_id: randomUUID() }),
    );
    await fixture.reference.apply([tombstone('wallets', wallet)]);
    expect(await rowOf(fixture, 'wallets', wallet)).toBeUndefined();
    expect(await door.run((k) => k.selectFrom('wallet_rules').select('id').where('wallet_id', '=', wallet))).toEqual(
      [],
    );
  });

  it('D1-10 D4-01: a row cannot move to another node, and a wallet cannot reference an account of another node', async () => {
    const ours = newFamily();
    const theirs = newFamily();
    await fixture.reference.apply([...ours.all(), ...theirs.all()]);
    const strange = randomUUID();
    const { applied, rejected } = await fixture.reference.apply([
      ours.version('accounts', 2, { node_id: theirs.ids.nodes }),
      ours.version('wallets', 2, { account_id: theirs.ids.accounts }),
      put('wallets', strange, 1, { ...ours.members.wallets, account_id: theirs.ids.accounts }),
      ours.version('assets', 2, { name: 'renamed' }),
    ]);
    expect(applied).toBe(1);
    expect(rejected.map(({ index }) => index).sort()).toEqual([0, 1, 2]);
    expect(await rowOf(fixture, 'accounts', ours.ids.accounts)).toMatchObject({
      version: '1',
      node_id: ours.ids.nodes,
    });
    expect(await rowOf(fixture, 'wallets', ours.ids.wallets)).toMatchObject({ version: '1' });
    expect(await rowOf(fixture, 'assets', ours.ids.assets)).toMatchObject({ name: 'renamed' });
  });

  it('D1-10: a waiting row whose parent is of another node is kept with the reason, and reported', async () => {
    const family = newFamily();
    const other = newFamily();
    await fixture.reference.apply([family.version('nodes', 1), other.version('nodes', 1), family.version('chains', 1)]);
    await fixture.reference.apply([family.version('wallets', 1)]);
    await fixture.reference.apply([put('accounts', family.ids.accounts, 1, { node_id: other.ids.nodes })]);
    expect(await rowOf(fixture, 'wallets', family.ids.wallets)).toBeUndefined();
    expect((await stateOf(fixture, [family.ids.wallets])).parked).toMatchObject([
      { reason: 'account_id names a row of another tenant', waits_for_id: null },
    ]);
    expect(fixture.dropped.at(-1)).toContain(family.ids.wallets);
  });

  it('D1-10 D6-08: an asset that arrives after its transaction gets the contract address from it', async () => {
    const { version, ids, all } = newFamily();
    await fixture.reference.apply(all().filter(({ kind }) => kind !== 'assets'));
    const transactions = new Transactions({ db: fixture.db, wake: () => undefined });
    const id = randomUUID();
    const assetId = ids.assets;
    await transactions.register({ id, nodeId: ids.nodes, collection: 'token_transactions', type: 1, assetId });
    const told = { id, type: 1, status: 3, contract_address: '0xC0', created_at: NOW, updated_at: NOW };
    const body = Buffer.from(JSON.stringify(told));
    await transactions.applyBatch('transactions.admin', [{ body, correlationId: 'c' }]);
    await fixture.reference.apply([version('assets', 1)]);
    expect(await rowOf(fixture, 'assets', assetId)).toMatchObject({ contract_address: '0xC0' });
    await fixture.reference.apply([version('assets', 2, { contract_address: '0xother', name: 'renamed' })]);
    expect(await rowOf(fixture, 'assets', assetId)).toMatchObject({ contract_address: '0xC0', name: 'renamed' });
  });
}
