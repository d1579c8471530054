import { expect, it, vi } from 'vitest';
import { mayChangeAudit } from '../../src/app/database-roles.ts';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { migrate } from '../../src/platform/database/schema-migrations.ts';
import { migrateWith, type TwoRoles, twoRoles } from '../support/harness/database-roles.ts';
import { thoroughly } from '../support/harness/in-turn.ts';
import { startOnRealServers, startPortcullis } from '../support/harness.ts';
import { createTopics, deleteTopics, freshRedis, topicPrefix } from '../support/services/isolation.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { emptyFolder, refusalOf } from '../support/start/folders.ts';
import type { Variables } from '../support/start/process.ts';

const LONG = 'x'.repeat(32);
const WARNING = 'the role of DATABASE_URL can change audit records; see docs/operations/database-roles.md';

describeReal('postgres', 'the service role', () => {
  it('is used by the services that the suites start on PostgreSQL', async () => {
    await using p = await startPortcullis();
    expect(await mayChangeAudit(p.service.context.database.db)).toBe(false);
  });

  it('outside production a start migrates as the owner, and then uses the service role', async () => {
    await using roles = await twoRoles();
    await using folder = await emptyFolder();
    const env = { DATA_DIR: folder.path, DATABASE_URL: roles.service };
    const start = (more: Variables = {}) => startPortcullis({ dataDir: folder.path, env: { ...env, ...more } });
    {
      await using p = await start({ MIGRATE_DATABASE_URL: roles.owner });
      expect((await p.call('GET', '/health')).status).toBe(200);
      expect(await usersOf(roles)).toEqual([roles.names.service]);
      expect(await mayChangeAudit(p.service.context.database.db)).toBe(false);
    }
    // Nothing is left to migrate: the next start needs no owner.
    await using again = await start();
    expect((await again.call('GET', '/health')).status).toBe(200);
  });
});

describeReal(['postgres', 'redis', 'kafka'], 'in production', () => {
  thoroughly('is used by the services that the suites start on real servers', async () => {
    await using p = await startOnRealServers();
    expect(await mayChangeAudit(p.service.context.database.db)).toBe(false);
  });

  it('D1-11: a start with a role that may change audit records logs a warning, and one with the service role does not', async () => {
    await using roles = await twoRoles();
    await migrateWith(roles);
    await using production = await inProduction();
    const warned = async (url: string) => {
      const warn = vi.fn<Log['warn']>();
      const env = { ...production.env, DATABASE_URL: url };
      await using _p = await startPortcullis({
        dataDir: env.DATA_DIR,
        env,
        overrides: { log: { ...silentLog, warn } },
      });
      return warn.mock.calls.some(([, message]) => message === WARNING);
    };
    expect(await warned(roles.owner)).toBe(true);
    expect(await warned(roles.service)).toBe(false);
  });

  it('D1-11: with the service role an older schema is rejected with the command to run, and a missing grant with the page to read', async () => {
    await using roles = await twoRoles();
    await using production = await inProduction();
    const { DATA_DIR, ...env } = { ...production.env, DATABASE_URL: roles.service };
    const refusal = () => refusalOf(DATA_DIR, env);
    const older = /^the database lacks migration-.+: run portcullis migrate$/m;
    expect(await refusal()).toMatch(older);
    {
      await using owner = await openDatabase({ url: roles.owner });
      await migrate(owner);
    }
    expect(await refusal()).toMatch(
      /the user of DATABASE_URL lacks a privilege \(docs\/operations\/database-roles.md\)$/,
    );
    await migrateWith(roles);
    await withPostgres(roles.owner, (client) =>
      client.query('delete from mikro_orm_migrations where name = (select max(name) from mikro_orm_migrations)'),
    );
    expect(await refusal()).toMatch(older);
  });
});

/** Who is connected to the database. */
function usersOf({ server }: TwoRoles): Promise<unknown[]> {
  return withPostgres(server, async (client) => {
    const { rows } = await client.query(
      `select distinct usename from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`,
    );
    return rows.map(({ usename }) => usename);
  });
}

/** The variables of a production on the real Redis and Kafka, whose topics are there. */
async function inProduction(): Promise<{ env: Variables & { DATA_DIR: string } } & AsyncDisposable> {
  const folder = await emptyFolder();
  const redis = await freshRedis();
  const [brokers, prefix] = [serviceAddress('kafka'), topicPrefix()];
  await createTopics(brokers, prefix, ALL_TOPICS);
  const env = {
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PUBLIC_URL: 'https://portcullis.example',
    DATA_DIR: folder.path,
    REDIS_URL: redis.url,
    KAFKA_BROKERS: brokers,
    TOPIC_PREFIX: prefix,
    JWT_SECRET_USER: `${LONG}1`,
    JWT_SECRET_DISCOVER: `${LONG}2`,
    JWT_SECRET_LEGACY: `${LONG}3`,
    SECRET_PEPPER: LONG,
    WEBHOOK_USERNAME: 'chain',
    WEBHOOK_PASSWORD: 'the password of the chain',
  };
  return {
    env,
    [Symbol.asyncDispose]: async () => {
      await deleteTopics(brokers, prefix);
      await redis.release();
      await folder[Symbol.asyncDispose]();
    },
  };
}
