import { Client } from 'pg';
import { expect, it, vi } from 'vitest';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { seedTwoNodes } from '../support/tenancy/two-nodes.ts';

describeReal('postgres', 'prepared queries together', () => {
  it('4.8-02: both statements of a page are sent before either is answered', async () => {
    using asked = vi.spyOn(Client.prototype, 'query');
    await using database = await realDatabase();
    const { db } = database;
    const { mine } = await seedTwoNodes(db);
    const count = db.prepareForms((k) => k.selectFrom('accounts').select((eb) => eb.fn.countAll().as('n')));
    const ids = db.prepareForms((k) => k.selectFrom('accounts').select('id').orderBy('id'));
    const both = () =>
      db.together(mine.nodeId, () => Promise.all([count.run(mine.nodeId, {}), ids.run(mine.nodeId, {})]));
    const [[counted], rows] = await both();
    expect(Number(counted?.n)).toBe(rows.length);
    expect(rows.map(({ id }) => id)).toEqual([...mine.accountIds].sort());
    // Other suites of this process ask their databases meanwhile.
    const isOurs = (given: string) => given.includes(mine.nodeId) && given.includes('"name":"portcullis_');
    const ours = asked.mock.contexts.filter((_, at) => isOurs(JSON.stringify(asked.mock.calls[at])));
    const [first, second] = ours;
    expect(ours).toHaveLength(2);
    expect(second).toBe(first);
    expect(first).toHaveProperty('pipeline', true);
    expect(database.connections.held()).toBe(0);
  });

  it('4.8-02: a failing statement rejects with its error, and later statements get a working connection', async () => {
    await using database = await realDatabase();
    const { db } = database;
    const { mine } = await seedTwoNodes(db);
    const ids = db.prepareForms((k, { limit }: { limit: number }) =>
      k.selectFrom('accounts').select('id').limit(limit),
    );
    const run = (limit: number) => ids.run(mine.nodeId, { limit });
    for (let time = 0; time < 12; time += 1) {
      await expect(db.together(mine.nodeId, () => Promise.all([run(-1), run(1)]))).rejects.toThrow('LIMIT must not');
    }
    expect(await db.together(mine.nodeId, () => Promise.all([run(1), run(0)]))).toEqual([[expect.anything()], []]);
    expect(database.connections.held()).toBe(0);
  });
});
