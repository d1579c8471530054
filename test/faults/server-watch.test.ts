import type { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { ServerWatch } from '../../src/platform/database/server-watch.ts';
import { freshDatabase } from '../support/services/isolation.ts';
import { connectPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

// In a process of its own: a timer that other files have left running is shared, and not the faked one.

const HERE = { standby: false, server: 'the first', pid: 7, busy: [] };

function connection(processID: number, told: object = {}) {
  const destroy = vi.fn();
  const rows = [{ ...HERE, pid: processID, ...told }];
  return { connection: { stream: { destroy } }, processID, once: vi.fn(), query: async () => ({ rows }), destroy };
}

describe('connections to a server whose address may fail over', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  const asked = (told: object) => ({ query: vi.fn(async () => ({ rows: [{ ...HERE, ...told }] })) });

  /** Lets a statement of the first of three connections have no answer; the third one is behind a pooler. */
  async function silence(source: { query: () => Promise<{ rows: (typeof HERE)[] }> }, forMs = 4_500) {
    const watch = new ServerWatch(source);
    const connections = [connection(7), connection(8), connection(9, { pid: 1 })] as const;
    for (const one of connections) await watch.admit(one);
    const [silent, , pooled] = connections;
    watch.note(silent, 1, performance.now());
    watch.note(pooled, 1, performance.now());
    await vi.advanceTimersByTimeAsync(forMs);
    watch.stop();
    return { closed: connections.map(({ destroy }) => destroy.mock.calls.length > 0), generation: watch.generation };
  }

  it.each([
    ['still runs the statement', { busy: [7] }, [false, false, false], 0],
    ['no longer runs the statement', { busy: [] }, [true, false, false], 0],
    ['is another server', { server: 'the second' }, [true, true, false], 1],
    ['is a standby', { standby: true, server: 'the second' }, [false, false, false], 0],
  ])(
    'D6-18: connections are closed or kept if the server at the address %s',
    async (_what, told, closed, generation) => {
      expect(await silence(asked(told))).toEqual({ closed, generation });
    },
  );

  it('D6-18 D6-25: when no server responds at the address, a statement waits for ten seconds, behind a pooler too', async () => {
    const nobody = { query: () => Promise.reject(new Error('no answer')) };
    expect(await silence(nobody, 9_500)).toEqual({ closed: [false, false, false], generation: 0 });
    expect(await silence(nobody, 12_500)).toEqual({ closed: [true, false, true], generation: 0 });
  });

  it('D6-18: the server is not queried while statements are answered', async () => {
    const source = asked({});
    const watch = new ServerWatch(source);
    const one = connection(7);
    await watch.admit(one);
    for (let second = 0; second < 10; second += 1) {
      watch.note(one, 1, performance.now());
      await vi.advanceTimersByTimeAsync(1_000);
      watch.note(one, -1, performance.now());
    }
    watch.stop();
    expect(source.query).not.toHaveBeenCalled();
  });

  it('D6-18: a new connection to another server closes connections to the former one', async () => {
    const watch = new ServerWatch(asked({}));
    const [former, next] = [connection(7), connection(8, { server: 'the second' })];
    for (const one of [former, next]) await watch.admit(one);
    watch.stop();
    expect([former.destroy.mock.calls.length, next.destroy.mock.calls.length, watch.generation]).toEqual([1, 0, 1]);
  });

  it('D6-18: a new connection to a standby is rejected', async () => {
    const watch = new ServerWatch(asked({}));
    await expect(watch.admit(connection(7, { standby: true }))).rejects.toMatchObject({ code: '25006' });
    watch.stop();
  });
});

describeReal('postgres', 'a server that no longer accepts writes', () => {
  it('D6-18: is no longer used after it rejected a write', async () => {
    await using fresh = await freshDatabase();
    await using database = await openDatabase({ url: fresh.url });
    const db = database.db.unscoped('test');
    await db.raw((sql) => sql`create table written (id integer)`);
    await db.raw((sql) => sql`set default_transaction_read_only = on`);
    const write = () => db.raw((sql) => sql`insert into written values (1)`);
    await expect(write()).rejects.toMatchObject({ code: '25006' });
    await write();
    expect(await db.raw((sql) => sql`select id from written`)).toEqual([{ id: 1 }]);
  });
});

describeReal('postgres', 'a server that still runs some of the statements', () => {
  afterEach(() => void vi.useRealTimers());

  it('D6-18: keeps the connection of a backend that works, and closes that of one without work, which it ends', async () => {
    await using fresh = await freshDatabase();
    await using asking = await connectPostgres(fresh.url);
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const watch = new ServerWatch(asking as never);
    const opened = async () => {
      const client = await connectPostgres(fresh.url);
      const ended = new Promise((done) => (client as unknown as EventEmitter).on('error', done));
      const { destroy, ...stream } = connection(0);
      const { rows } = await client.query('select pg_backend_pid() as pid');
      const query = (statement: never) => client.query(statement);
      const watched = { ...stream, processID: Number(rows[0]?.pid), query };
      await watch.admit(watched as never);
      watch.note(watched as never, 1, performance.now());
      return { client, ended, destroy };
    };
    const [working, idle] = [await opened(), await opened()];
    const statement = working.client.query('select pg_sleep(5)');
    // A backend counts as idle three seconds after its last statement.
    await new Promise((done) => setTimeout(done, 3_200));
    await vi.advanceTimersByTimeAsync(4_500);
    await idle.ended;
    await vi.waitFor(() => expect(idle.destroy).toHaveBeenCalled());
    expect(working.destroy).not.toHaveBeenCalled();
    watch.stop();
    await statement;
    await working.client.end();
  });
});
