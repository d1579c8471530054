import { expect, it } from 'vitest';
import { mayChangeAudit } from '../../src/app/database-roles.ts';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { migrate } from '../../src/platform/database/schema-migrations.ts';
import { migrateWith, type TwoRoles, twoRoles } from '../harness/database-roles.ts';
import { startOnRealServers, startPortcullis } from '../harness.ts';
import { createTopics, deleteTopics, freshRedis, topicPrefix } from '../services/isolation.ts';
import { withPostgres } from '../services/pg-client.ts';
import { describeReal, serviceAddress } from '../services/real.ts';
import { emptyFolder } from '../start/folders.ts';
import { spawnInstance, startInstance, type Variables } from '../start/process.ts';

const LONG = 'x'.repeat(32);
const WARNING = 'the user of DATABASE_URL may change audit records: see docs/operations/database-roles.md';

describeReal('postgres', 'the role of services', () => {
  it('is that of every service that the suites start on PostgreSQL: what they do, it may do', async () => {
    await using p = await startPortcullis();
    expect(await mayChangeAudit(p.service.context.database.db)).toBe(false);
  });

  it('outside production a start migrates by the owner, and runs by the other role', async () => {
    await using roles = await twoRoles();
    await using folder = await emptyFolder();
    const env = { DATA_DIR: folder.path, DATABASE_URL: roles.service };
    await using instance = await startInstance({ ...env, MIGRATE_DATABASE_URL: roles.owner });
    expect((await fetch(`${instance.baseUrl}/health`)).status).toBe(200);
    expect(await usersOf(roles)).toEqual([roles.names.service]);
    await using database = await openDatabase({ url: roles.service });
    expect(await mayChangeAudit(database.db)).toBe(false);
    // Nothing is left to migrate: the next start needs no owner.
    await instance.kill('SIGTERM');
    await using again = await startInstance(env);
    expect((await fetch(`${again.baseUrl}/health`)).status).toBe(200);
  });
});

describeReal(['postgres', 'redis', 'kafka'], 'in production', () => {
  it('is that of every service that the suites start on real servers', async () => {
    await using p = await startOnRealServers();
    expect(await mayChangeAudit(p.service.context.database.db)).toBe(false);
  });

  it('D1-11: a start by a role that may change audit records is warned of, one by the role of services is not', async () => {
    await using roles = await twoRoles();
    await migrateWith(roles);
    await using production = await inProduction();
    const warned = async (url: string) => {
      await using instance = await startInstance({ ...production.env, DATABASE_URL: url });
      await instance.kill('SIGTERM');
      return instance.stdout().includes(WARNING);
    };
    expect(await warned(roles.owner)).toBe(true);
    expect(await warned(roles.service)).toBe(false);
  });

  it('D1-11: by the role of services an older schema is refused with what to run, and a missing grant with the page', async () => {
    await using roles = await twoRoles();
    await using production = await inProduction();
    const refusal = async () => {
      await using instance = spawnInstance({ ...production.env, DATABASE_URL: roles.service });
      const { code, stderr } = await instance.ended;
      return { code, stderr };
    };
    const older = {
      code: 78,
      stderr: expect.stringMatching(/the database lacks migration-.+: run portcullis migrate\n/),
    };
    expect(await refusal()).toEqual(older);
    {
      await using owner = await openDatabase({ url: roles.owner });
      await migrate(owner);
    }
    expect(await refusal()).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /the user of DATABASE_URL lacks a privilege \(docs\/operations\/database-roles.md\)\n$/,
      ),
    });
    await migrateWith(roles);
    await withPostgres(roles.owner, (client) =>
      client.query('delete from mikro_orm_migrations where name = (select max(name) from mikro_orm_migrations)'),
    );
    expect(await refusal()).toEqual(older);
  });
});

/** Who is connected to the database. */
function usersOf({ server }: TwoRoles): Promise<unknown[]> {
  return withPostgres(server, async (client) => {
    const { rows } = await client.query(
      'select distinct usename from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    return rows.map(({ usename }) => usename);
  });
}

/** The variables of a production on the real Redis and Kafka, whose topics are there. */
async function inProduction(): Promise<{ env: Variables } & AsyncDisposable> {
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
