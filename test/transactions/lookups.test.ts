import { expect, it } from 'vitest';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import {
  ADMIN,
  delivery,
  eventsOf,
  mirrorOn,
  parkedOf,
  rowOf,
  transactionOf,
  USER,
  useMirror,
} from '../support/transactions/fixture.ts';
import { askedOwner, lookupsLeft, lookupsOn } from '../support/transactions/lookup-fixture.ts';
import { heldCommit, watchedDb } from '../support/transactions/watched-db.ts';
import { lookupsContract } from './lookups.contract.ts';

describeEmbedded('lookups on the embedded database', () => lookupsContract(embeddedDatabase));

describeReal('postgres', 'lookups on PostgreSQL', () => lookupsContract(realDatabase));

describeReal('postgres', 'lookups of several processes', () => {
  const fixture = useMirror(realDatabase);

  it('D6-20: of several workers exactly one looks up each id, and every id is looked up', async () => {
    const transactions = Array.from({ length: 60 }, () => transactionOf(fixture));
    await fixture.mirror.applyBatch(
      ADMIN,
      transactions.map(({ id }) => delivery({ id, status: 3 })),
    );
    const owner = askedOwner(async (id) => transactions.find((one) => one.id === id));
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        const { lookups, signal } = lookupsOn(fixture, owner);
        while (await lookups.iterate(signal));
        await lookups.settled();
      }),
    );
    expect(owner.asked.toSorted()).toEqual(transactions.map(({ id }) => id).sort());
    for (const { id } of transactions) expect(await rowOf(fixture, id)).toMatchObject({ status: 3 });
    expect(await lookupsLeft(fixture)).toEqual([]);
  });

  it('D6-20: a lookup that ends while a notification is being parked applies the notification', async () => {
    const transaction = transactionOf(fixture);
    await fixture.mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status: 1 })]);
    const held = heldCommit();
    const owner = askedOwner(async () => {
      // The answer comes while the next notification is parked and not committed.
      void parking();
      await held.reached;
      setImmediate(held.release);
      return transaction;
    });
    let parked: Promise<unknown> = Promise.resolve();
    const parking = () => {
      parked = mirrorOn(watchedDb(fixture.db, held)).applyBatch(USER, [delivery({ id: transaction.id, status: 3 })]);
    };
    const { lookups, signal } = lookupsOn(fixture, owner);
    await lookups.iterate(signal);
    await lookups.settled();
    await parked;
    expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: 3 });
    expect(await parkedOf(fixture, transaction.id)).toBe(0);
    expect(await lookupsLeft(fixture)).toEqual([]);
  });

  it('D6-06 D6-20: both consumer groups, a mutation, the topic and two lookups at once lose no notification', async () => {
    const { mirror, nodeIds } = fixture;
    for (let round = 0; round < 40; round += 1) {
      const right = transactionOf(fixture, { nodeId: nodeIds[1] });
      const wrong = { ...right, nodeId: nodeIds[0], collection: 'otc_transactions' as const };
      const told = [delivery({ id: right.id, status: 2 }), delivery({ id: right.id, status: 3, second: 1 })];
      const owner = askedOwner(async () => right);
      const lookUp = async () => {
        const { lookups, signal } = lookupsOn(fixture, owner);
        await lookups.iterate(signal);
        await lookups.settled();
      };
      const steps = [
        () => mirror.applyBatch(ADMIN, told),
        lookUp,
        () => mirror.applyBatch(USER, told),
        () => mirror.register(wrong),
        ...(round % 2 === 0 ? [() => mirror.registerByOwner(right)] : []),
        lookUp,
      ];
      const turned = [...steps.slice(round % steps.length), ...steps.slice(0, round % steps.length)];
      await Promise.all(turned.map((step) => step()));
      // Whatever had not been parked when they looked: it is now, or it is registered.
      await lookUp();
      const row = await rowOf(fixture, right.id);
      if (row?.registered_by === 'mutation') await mirror.registerByOwner(right);
      expect(await rowOf(fixture, right.id)).toMatchObject({ node_id: nodeIds[1], status: 3, registered_by: 'topic' });
      expect(await parkedOf(fixture, right.id)).toBe(0);
      expect(await lookupsLeft(fixture)).toEqual([]);
      expect((await eventsOf(fixture, right.id)).map(({ node_id }) => node_id)).not.toContain(nodeIds[0]);
    }
  });
});
