import { beforeAll, describe, expect, it, vi } from 'vitest';
import { MemoryCache } from '../../src/platform/cache/cache.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { counter, lastUse, limitedClient, MONTHS_END, savedQuota, times } from '../support/oauth/limits-fixture.ts';
import { describeReal } from '../support/services/real.ts';

/** What is saved of clients' use in a database. */
function savedLimitsContract(open: () => Promise<Database>): void {
  const database = beforeTests(open);
  let db: Database['db'];
  beforeAll(async () => {
    ({ db } = database);
  });

  describe('the saved usage of a client', () => {
    it('D1-08 8-06: the usage saved by one process is read by the next', async () => {
      const client = await limitedClient(db, { perMonth: 5 });
      const first = counter(db);
      await times(3, () => first.count(client));
      await first.limits.stop();
      expect(await savedQuota(db, client)).toBe(3);
      const second = counter(db);
      expect(await times(3, () => second.count(client))).toEqual(['passed', 'passed', 'monthly_limit_exceeded']);
    });

    it('8-06 D3-15: usage restarts with the calendar month, and the last count of the previous month is saved', async () => {
      const client = await limitedClient(db, { perMonth: 2 });
      const { limits, clock, count } = counter(db);
      expect(await times(3, () => count(client))).toEqual(['passed', 'passed', 'monthly_limit_exceeded']);
      clock.nowMs = MONTHS_END - 1;
      expect(await count(client)).toBe('monthly_limit_exceeded');
      clock.nowMs = MONTHS_END;
      expect(await times(3, () => count(client))).toEqual(['passed', 'passed', 'monthly_limit_exceeded']);
      await limits.save();
      expect(await savedQuota(db, client, '2026-11')).toBe(2);
      expect(await savedQuota(db, client, '2026-12')).toBe(2);
    });

    it('D3-15: rejected requests change neither the count nor the time of last use', async () => {
      const client = await limitedClient(db, { perMonth: 9, perSecond: 1 });
      const { limits, clock, count } = counter(db);
      const usedAt = clock.nowMs;
      await count(client);
      clock.nowMs += 900;
      expect(await times(5, () => count(client))).toEqual(Array(5).fill('rate_limit_exceeded'));
      await limits.save();
      expect(await savedQuota(db, client)).toBe(1);
      expect(await lastUse(db, client)).toBe(usedAt);
    });

    it('the time of last use is saved for clients with and without limits, and never decreases', async () => {
      for (const settings of [{}, { perMonth: 9 }]) {
        const client = await limitedClient(db, settings);
        const [early, late] = [counter(db), counter(db)];
        late.clock.nowMs += 5_000;
        for (const { count } of [late, early]) await count(client);
        for (const { limits } of [late, early]) await limits.save();
        expect(await lastUse(db, client)).toBe(late.clock.nowMs);
      }
    });

    it('usage is saved once: a save without new requests does not write to the database', async () => {
      const client = await limitedClient(db, { perMonth: 9 });
      let saves = 0;
      const process = counter(db, {
        save: (save) => (quotas, lastUses) => {
          saves += 1;
          return save(quotas, lastUses);
        },
      });
      await process.count(client);
      await process.limits.save();
      const before = saves;
      await process.limits.save();
      await process.limits.stop();
      expect(saves).toBe(before);
    });

    it('usage is kept in memory while saving fails, with one warning and no delay for requests', async () => {
      const client = await limitedClient(db, { perMonth: 9 });
      let isDown = false;
      let failures = 0;
      const process = counter(db, {
        save: (save) => (quotas, lastUses) => {
          if (!isDown) return save(quotas, lastUses);
          failures += 1;
          return Promise.reject(new Error('down'));
        },
      });
      await process.count(client);
      isDown = true;
      process.limits.start();
      for (const least of [1, 2, 3]) {
        expect(await process.count(client)).toBe('passed');
        await vi.waitFor(() => expect(failures).toBeGreaterThanOrEqual(least));
      }
      expect(process.logged).toEqual(['warn: could not save quota counters; retrying']);
      isDown = false;
      await process.limits.stop();
      expect(await savedQuota(db, client)).toBe(4);
    });

    it('usage of a deleted client does not prevent other usage from being saved', async () => {
      const [gone, client] = [await limitedClient(db, { perMonth: 9 }), await limitedClient(db, { perMonth: 9 })];
      const process = counter(db);
      await process.count(gone);
      await process.count(client);
      const door = db.unscoped('test');
      await door.run((k) => k.deleteFrom('client_quotas').where('client_id', '=', gone.clientId));
      await door.run((k) => k.deleteFrom('clients').where('id', '=', gone.clientId));
      await process.limits.stop();
      expect(await savedQuota(db, client)).toBe(1);
      expect(process.logged).toEqual([]);
    });

    it('D3-15 D3-28: when neither cache nor database can be read, the request is a 503 and the next one reads again', async () => {
      const client = await limitedClient(db, { perMonth: 9 });
      let isDown = true;
      const process = counter(db, {
        save: (save) => (quotas, lastUses) => (isDown ? Promise.reject(new Error('down')) : save(quotas, lastUses)),
      });
      await expect(process.count(client)).rejects.toMatchObject({ code: 'service_unavailable' });
      isDown = false;
      expect(await process.count(client)).toBe('passed');
    });
  });

  describe('processes that save usage of the same client', () => {
    it('D3-28: a process never lowers the saved count', async () => {
      const client = await limitedClient(db, { perMonth: 100 });
      const cache = new MemoryCache();
      const [first, second] = [counter(db, { cache }), counter(db, { cache })];
      await times(2, () => first.count(client));
      await times(5, () => second.count(client));
      await second.limits.save();
      await first.limits.save();
      expect(await savedQuota(db, client)).toBe(7);
    });

    it('two processes that save many clients concurrently wait for each other and lose no usage', async () => {
      const clients = await Promise.all(Array.from({ length: 20 }, () => limitedClient(db, { perMonth: 100 })));
      const cache = new MemoryCache();
      const processes = [counter(db, { cache }), counter(db, { cache })];
      for (const { count } of processes) await Promise.all(clients.map((client) => count(client)));
      await Promise.all(processes.map(({ limits }) => limits.save()));
      for (const client of clients) expect(await savedQuota(db, client)).toBe(2);
    });
  });
}

describeEmbedded('usage saved in the embedded database', () => savedLimitsContract(embeddedDatabase));

describeReal('postgres', 'usage saved in PostgreSQL', () => savedLimitsContract(realDatabase));
