import { expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/database.ts';
import { realDatabase } from '../harness/databases.ts';
import { describeReal } from '../services/real.ts';
import { seedTwoNodes } from '../tenancy/two-nodes.ts';

interface Connection {
  on(event: 'connect', listener: (client: Connection) => void): void;
  connection: {
    stream: {
      _writev: (chunks: { chunk: Buffer }[], done: () => void) => void;
      prependListener(event: 'data', listener: () => void): void;
    };
  };
}

/**
 * The names of the prepared statements that each write to PostgreSQL runs, and `answer` for bytes that come from it, from the
 * time of the call on.
 */
async function trafficOf({ orm }: Database): Promise<string[]> {
  const traffic: string[] = [];
  const pool = (await orm.em.getConnection().getNativeClient()) as unknown as { _clients: Connection[] };
  for (const { connection } of pool._clients) {
    const { stream } = connection;
    const { _writev: writev } = stream;
    stream._writev = function recorded(this: unknown, chunks, done) {
      const sent = Buffer.concat(chunks.map(({ chunk }) => chunk)).toString('latin1');
      traffic.push(...[...sent.matchAll(/B....\0(portcullis_\d+)\0/gs)].map(([, name = '']) => name));
      return Reflect.apply(writev, this, [chunks, done]);
    };
    stream.prependListener('data', () => traffic.push('answer'));
  }
  return traffic;
}

describeReal('postgres', 'prepared queries together', () => {
  it('4.8-02: both of a page are sent before one is answered', async () => {
    await using database = await realDatabase();
    const { db } = database;
    const { mine } = await seedTwoNodes(db);
    const count = db.prepareForms((k) => k.selectFrom('accounts').select((eb) => eb.fn.countAll().as('n')));
    const ids = db.prepareForms((k) => k.selectFrom('accounts').select('id').orderBy('id'));
    const both = () =>
      db.together(mine.nodeId, () => Promise.all([count.run(mine.nodeId, {}), ids.run(mine.nodeId, {})]));
    await both();
    const traffic = await trafficOf(database);
    const [[counted], rows] = await both();
    expect(Number(counted?.n)).toBe(rows.length);
    expect(rows.map(({ id }) => id)).toEqual([...mine.accountIds].sort());
    expect(traffic.slice(0, 2)).toEqual([expect.stringMatching(/^portcullis_/), expect.stringMatching(/^portcullis_/)]);
    expect(traffic).toContain('answer');
    expect(database.connections.held()).toBe(0);
  });

  it('4.8-02: one that fails gives its error, and the next ones get a connection that is whole', async () => {
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
