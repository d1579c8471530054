import { describe, expect, it } from 'vitest';
import { watchDatabaseAge } from '../../src/app/operations.ts';
import type { Log } from '../../src/lib/log.ts';
import { MemoryCache } from '../../src/platform/cache/cache.ts';
import { readConfig } from '../../src/platform/config/config.ts';
import { type Database, openDatabase } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { asService } from '../support/harness/database-roles.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

const { config } = readConfig({ REDIS_URL: 'redis://127.0.0.1' });

/** Runs a start on stores, and returns its warnings. */
async function start(database: Database, cache: MemoryCache): Promise<string[]> {
  const warnings: string[] = [];
  const silent = () => undefined;
  const log: Log = { debug: silent, info: silent, error: silent, warn: (_, message) => warnings.push(message) };
  await using stack = new AsyncDisposableStack();
  await watchDatabaseAge({ config, database, cache, log }, stack);
  return warnings;
}

/** Counts an audit record, as a process does that writes one. */
async function record({ db }: Database): Promise<void> {
  await db.unscoped('a test').raw((sql) => sql`select nextval('audit_positions')`);
}

/** A cache that does something before it responds for the first time. */
class Delayed extends MemoryCache {
  first: (() => Promise<unknown>) | undefined;

  override async raisePosition(position: string): Promise<string> {
    const { first } = this;
    this.first = undefined;
    await first?.();
    return super.raisePosition(position);
  }
}

const OLDER = [expect.stringMatching(/^the database is older than the last one that Redis knows/)];

describe('a start', () => {
  const database = beforeTests(embeddedDatabase);

  it('D6-18: warns at each start when Redis knows a later position of the database', async () => {
    const cache = new MemoryCache();
    await record(database);
    expect(await start(database, cache)).toEqual([]);
    await using older = await embeddedDatabase();
    expect(await start(older, cache)).toEqual(OLDER);
    expect(await start(older, cache)).toEqual(OLDER);
  });

  it('D6-18: does not warn when Redis is empty, lost its data, or does not respond', async () => {
    await record(database);
    expect(await start(database, new MemoryCache())).toEqual([]);
    const away = Object.assign(new MemoryCache(), { raisePosition: () => Promise.reject(new Error('away')) });
    expect(await start(database, away)).toEqual([]);
  });

  it('D6-18: does not warn while other processes write, as in a rolling upgrade', async () => {
    const cache = new Delayed();
    await start(database, cache);
    cache.first = async () => {
      await record(database);
      await start(database, cache);
    };
    expect(await start(database, cache)).toEqual([]);
  });
});

describeReal('postgres', 'a start with the database role of the service', () => {
  const database = beforeTests(realDatabase);

  it('D6-18: can read the position of the database', async () => {
    const cache = new MemoryCache();
    await cache.raisePosition('9');
    await using service = await openDatabase({ url: asService(database.url) });
    expect(await start(service, cache)).toEqual(OLDER);
  });
});
