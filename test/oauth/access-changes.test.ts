import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AccessChange, AccessChanges } from '../../src/access/sessions/access-changes.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { type RealDatabase, realDatabase } from '../harness/databases.ts';
import { describeReal } from '../services/real.ts';

const MINUTE_MS = 60_000;

describeReal('postgres', 'what has ended, as replicas learn of it', () => {
  let database: RealDatabase;
  const nodeId = randomUUID();

  beforeAll(async () => {
    database = await realDatabase();
    await database.db.unscoped('test').run((k) => k.insertInto('nodes').values({ id: nodeId, name: 'Test' }));
  });
  afterAll(() => database[Symbol.asyncDispose]());

  function replica(over: { nowMs?: () => number; onError?: (error: unknown) => void } = {}) {
    return new AccessChanges({ db: database.db, nowMs: Date.now, onError: () => undefined, ...over });
  }
  const client = (subject: string): AccessChange => ({ kind: 'client', nodeId, subject, item: null });

  function following(changes: AccessChanges, kinds: readonly AccessChange['kind'][] = ['client']) {
    const seen: string[] = [];
    changes.follow({
      kinds,
      sinceMs: MINUTE_MS,
      apply: async (ended) => void seen.push(...ended.map(({ subject }) => subject)),
    });
    return seen;
  }

  it('D3-07: this process knows at once, another one at its next reading, and each once', async () => {
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

  it('what is rolled back is told to nobody', async () => {
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

  it('a reader misses none of many that commit at once, whichever began first', async () => {
    const other = await openDatabase({ url: database.url });
    try {
      const writers = [replica(), new AccessChanges({ db: other.db, nowMs: Date.now, onError: () => undefined })];
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

  it('D3-23: a follower that never finishes, as the cache is frozen, keeps no other one waiting', async () => {
    const [here, there] = [replica(), replica()];
    there.follow({ kinds: ['client'], sinceMs: MINUTE_MS, apply: () => new Promise(() => undefined) });
    const seen = following(there);
    const ids = [randomUUID(), randomUUID()];
    for (const id of ids) {
      await here.commit(async (ended) => ended(client(id)));
      void there.poll();
      await expect.poll(() => seen.includes(id)).toBe(true);
    }
  });

  it('a follower that fails is told again until it succeeds, and holds no other up', async () => {
    const errors: unknown[] = [];
    const there = replica({ onError: (error) => errors.push(error) });
    let isDown = true;
    const late: string[] = [];
    there.follow({
      kinds: ['client'],
      sinceMs: MINUTE_MS,
      apply: async (ended) => {
        if (isDown) throw new Error('away');
        late.push(...ended.map(({ subject }) => subject));
      },
    });
    const seen = following(there);
    const id = randomUUID();
    await replica().commit(async (ended) => ended(client(id)));
    await there.poll();
    await there.poll();
    expect(seen.filter((one) => one === id)).toHaveLength(1);
    expect(errors).toHaveLength(1);
    isDown = false;
    await there.poll();
    await there.poll();
    expect(late.filter((one) => one === id)).toHaveLength(1);
  });

  describe('the first reading', () => {
    it('goes back as far as was asked for, and no further', async () => {
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

    it('brings each follower what is of its kinds', async () => {
      const token: AccessChange = { kind: 'token', nodeId, subject: randomUUID(), item: randomUUID() };
      const there = replica();
      const [clients, tokens] = [following(there, ['client']), following(there, ['token', 'session'])];
      await replica().commit(async (ended) => ended(token));
      await there.poll();
      expect(clients).not.toContain(token.subject);
      expect(tokens).toEqual([token.subject]);
    });
  });
});
