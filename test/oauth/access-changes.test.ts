import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type AccessChange, AccessChanges } from '../../src/access/revocation/access-changes.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const MINUTE_MS = 60_000;

describeReal('postgres', 'what has ended, as replicas learn of it', () => {
  const database = beforeTests(realDatabase);
  const nodeId = randomUUID();

  beforeAll(async () => {
    await database.db.unscoped('test').run((k) => k.insertInto('nodes').values({ id: nodeId, name: 'Test' }));
  });

  function replica(over: Partial<ConstructorParameters<typeof AccessChanges>[0]> = {}) {
    return new AccessChanges({
      db: database.db,
      clock: { note: () => undefined },
      generation: () => 0,
      nowMs: Date.now,
      onError: () => undefined,
      ...over,
    });
  }
  const client = (subject: string): AccessChange => ({ kind: 'client', nodeId, subject, item: null });

  function following(changes: AccessChanges) {
    const seen: string[] = [];
    changes.follow({
      sinceMs: MINUTE_MS,
      apply: async (ended) => void seen.push(...ended.map(({ subject }) => subject)),
    });
    return seen;
  }

  it('D3-07: a revocation is applied at once in this process, and once by another process when it next polls', async () => {
    const [here, there] = [replica(), replica()];
    const [seenHere, seenThere] = [following(here), following(there)];
    await there.poll();
    seenThere.length = 0;
    const id = randomUUID();
    await here.commit(async (ended) => ended(client(id)));
    expect(seenHere).toEqual([id]);
    expect(seenThere).toEqual([]);
    await there.poll();
    await there.poll();
    expect(seenThere).toEqual([id]);
  });

  it('a change that is rolled back reaches no follower', async () => {
    const [here, there] = [replica(), replica()];
    const [seenHere, seenThere] = [following(here), following(there)];
    const id = randomUUID();
    const failing = here.commit(async (ended) => {
      ended(client(id));
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    await there.poll();
    expect([...seenHere, ...seenThere]).not.toContain(id);
  });

  it('a reader receives all changes of many concurrent commits, whatever order they began in', async () => {
    const other = await openDatabase({ url: database.url });
    try {
      const writers = [replica(), replica({ db: other.db })];
      const reader = replica();
      const seen = following(reader);
      const ids = Array.from({ length: 60 }, () => randomUUID());
      let isWriting = true;
      const reading = (async () => {
        while (isWriting) await reader.poll();
      })();
      await Promise.all(
        ids.map((id, index) =>
          writers[index % 2]?.commit(async (ended) => {
            ended(client(id));
            await sleep(index % 7);
          }),
        ),
      );
      isWriting = false;
      await reading;
      await reader.poll();
      expect(ids.filter((id) => !seen.includes(id))).toEqual([]);
    } finally {
      await other[Symbol.asyncDispose]();
    }
  });

  it('a follower that fails gets the change again until it succeeds', async () => {
    const errors: unknown[] = [];
    const there = replica({ onError: (error) => errors.push(error) });
    let isDown = true;
    const late: string[] = [];
    there.follow({
      sinceMs: MINUTE_MS,
      apply: async (ended) => {
        if (isDown) throw new Error('away');
        late.push(...ended.map(({ subject }) => subject));
      },
    });
    const id = randomUUID();
    await replica().commit(async (ended) => ended(client(id)));
    await there.poll();
    await there.poll();
    expect(errors).toHaveLength(1);
    isDown = false;
    await there.poll();
    await there.poll();
    expect(late.filter((one) => one === id)).toHaveLength(1);
  });

  it('D3-36: after the database server changed, a follower gets recent changes again', async () => {
    let generation = 0;
    const there = replica({ generation: () => generation });
    const seen = following(there);
    const id = randomUUID();
    await replica().commit(async (ended) => ended(client(id)));
    await there.poll();
    await there.poll();
    generation += 1;
    await there.poll();
    expect(seen.filter((one) => one === id)).toHaveLength(2);
  });

  describe('waiting for recent changes', () => {
    async function aging() {
      const changes = replica();
      following(changes);
      await changes.poll();
      const statements = vi.spyOn(database.db, 'unscoped');
      const now = performance.now();
      vi.spyOn(performance, 'now').mockImplementation(() => now + 1_500);
      return { changes, statements };
    }
    afterEach(() => vi.restoreAllMocks());

    it('D3-36: a request does not wait within a second of the last read', async () => {
      const changes = replica();
      following(changes);
      await changes.poll();
      expect(changes.waitUntilFresh()).toBeUndefined();
    });

    it('D3-36: after a second, concurrent requests share one read', async () => {
      const { changes, statements } = await aging();
      expect(changes.ageMs).toBeGreaterThan(1_000);
      await Promise.all([changes.waitUntilFresh(), changes.waitUntilFresh(), changes.waitUntilFresh()]);
      expect(statements).toHaveBeenCalledTimes(1);
      expect(changes.waitUntilFresh()).toBeUndefined();
    });

    it('D3-36: a request gets 503 when the database does not respond in time, and its error when it fails', async () => {
      const { changes, statements } = await aging();
      statements.mockImplementationOnce(() => {
        throw new Error('unavailable');
      });
      await expect(changes.waitUntilFresh()).rejects.toThrow('unavailable');
      const locked = withPostgres(database.url, async (client) => {
        await client.query('begin');
        await client.query('lock table access_changes in access exclusive mode');
        await expect(changes.waitUntilFresh()).rejects.toMatchObject({ code: 'service_unavailable' });
      });
      await locked;
      // The read that was waiting for the lock goes on by itself.
      await vi.waitFor(() => expect(changes.waitUntilFresh()).toBeUndefined());
    });
  });

  describe('the first read', () => {
    it('goes back as far as the follower asked, and no further', async () => {
      const now = Date.now();
      const [old, recent] = [randomUUID(), randomUUID()];
      await replica({ nowMs: () => now - 2 * MINUTE_MS }).commit(async (ended) => ended(client(old)));
      await replica({ nowMs: () => now - MINUTE_MS / 2 }).commit(async (ended) => ended(client(recent)));
      const late = replica({ nowMs: () => now });
      const seen = following(late);
      await late.poll();
      expect(seen).toContain(recent);
      expect(seen).not.toContain(old);
    });
  });
});
