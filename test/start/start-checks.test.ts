import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { lackingPrivileges } from '../../src/app/database-roles.ts';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { migrateWith, twoRoles } from '../support/harness/database-roles.ts';
import { startPortcullis } from '../support/harness.ts';
import { createTopics, deleteTopics, freshRedis, topicPrefix } from '../support/services/isolation.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { emptyFolder, refusalOf, startedFolder } from '../support/start/folders.ts';
import { startInstance } from '../support/start/process.ts';
import { smallDisk, whyNoSmallDisk } from '../support/start/small-disk.ts';

const MIB = 1024 * 1024;

/** What `config check --connect` finds, and its exit code. */
async function checks(env: Record<string, string>) {
  const { code, out } = await portcullis(['config', 'check', '--connect', '--json'], env);
  return { code, found: JSON.parse(out).checks };
}

/** What a start with these variables logs above the level info. */
async function logged(options: Parameters<typeof startPortcullis>[0]): Promise<{ level: string; message: string }[]> {
  const lines: { level: string; message: string }[] = [];
  const told = (level: string) => (_fields: object, message: string) => void lines.push({ level, message });
  const log = { debug: () => undefined, info: () => undefined, warn: told('warn'), error: told('error') };
  await using _started = await startPortcullis({ ...options, overrides: { ...options?.overrides, log } });
  return lines;
}

describeReal('postgres', 'the checks of a start', () => {
  const roles = beforeTests(twoRoles);
  let env: Record<string, string>;
  beforeAll(async () => {
    await migrateWith(roles);
    env = { DATABASE_URL: roles.service };
  });

  const asServer = (statement: string) => withPostgres(roles.server, (client) => client.query(statement));

  it('D1-11: a role that may only read is refused by a start, and named by config check --connect with what to type', async () => {
    await using folder = await emptyFolder();
    expect(await checks(env)).toEqual({ code: 0, found: [] });
    await asServer(`revoke insert, update, delete on all tables in schema public from ${roles.names.service}`);
    const message = expect.stringMatching(
      new RegExp(
        `^the role ${roles.names.service} of DATABASE_URL lacks delete, insert, update on access_changes, .* and \\d+ more; insert on audit_records: run portcullis migrate with the owner of the tables in MIGRATE_DATABASE_URL`,
      ),
    );
    expect(await checks(env)).toEqual({ code: 1, found: [{ level: 'fatal', message }] });
    const { code, err } = await portcullis(['config', 'check', '--connect'], env);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^a start would be refused: the role /) });
    expect(await refusalOf(folder.path, env)).toEqual(message);
    await migrateWith(roles);
    expect(await checks(env)).toEqual({ code: 0, found: [] });
    await asServer(`alter role ${roles.names.service} set default_transaction_read_only = on`);
    const readOnly = `the role ${roles.names.service} of DATABASE_URL is read-only: alter role ${roles.names.service} set default_transaction_read_only = off`;
    expect((await checks(env)).found).toContainEqual({ level: 'fatal', message: readOnly });
    await asServer(`alter role ${roles.names.service} set default_transaction_read_only = off`);
    await asServer(`revoke usage on schema public from ${roles.names.service}, public`);
    expect((await checks(env)).found[0].message).toContain(
      'lacks usage on the schema of its search_path: run portcullis',
    );
    await asServer(`grant usage on schema public to public`);
    await migrateWith(roles);
  });

  it('D1-11: each privilege that migrate grants is missed when it is gone', async () => {
    await using database = await openDatabase({ url: roles.service });
    await withPostgres(roles.server, async (client) => {
      const { rows } = await client.query(
        `select format('table %I', relname) as object, relname as name, lower(privilege_type) as privilege
         from pg_class, aclexplode(relacl) where relkind in ('r', 'p') and not relispartition and grantee = $1::regrole
         union all
         select format('sequence %I', relname), relname, 'usage' from pg_class where relname = 'audit_positions'
         union all
         select 'function ' || oid::regprocedure, proname, 'execute' from pg_proc, aclexplode(proacl) where grantee = $1::regrole`,
        [roles.names.service],
      );
      expect(rows.length).toBeGreaterThan(100);
      for (const { object, name, privilege } of rows) {
        await client.query(`revoke ${privilege} on ${object} from ${roles.names.service}`);
        expect((await lackingPrivileges(database.db)).lacking).toEqual([`${privilege} on ${name}`]);
        await client.query(`grant ${privilege} on ${object} to ${roles.names.service}`);
      }
    });
    expect((await lackingPrivileges(database.db)).lacking).toEqual([]);
  });

  it.each([
    ['ahead of', 10_000],
    ['behind', -10_000],
  ])(
    'D1-11: a clock that is ten seconds %s that of PostgreSQL is named by a start and by config check',
    async (side, skewMs) => {
      const message = expect.stringMatching(
        new RegExp(`^this machine's clock is (?:[5-9]|10)\\.\\d s ${side} PostgreSQL's: run timedatectl on both`),
      );
      expect(await logged({ overrides: { skewMs } })).toContainEqual({ level: 'error', message });
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + skewMs });
      onTestFinished(() => void vi.useRealTimers());
      expect(await checks(env)).toEqual({ code: 1, found: [{ level: 'error', message }] });
    },
  );

  it('D1-11: AUDIT_CHECKPOINTS that cannot be written is named by a start and by config check, which does not create the file', async () => {
    await using folder = await emptyFolder();
    const at = (path: string) => ({ AUDIT_CHECKPOINTS: `file:${path}` });
    const absent = join(folder.path, 'absent', 'seals.ndjson');
    const message = expect.stringMatching(
      `^AUDIT_CHECKPOINTS: cannot write to ${absent} \\(Error: ENOENT: .*\\): create its folder, and let`,
    );
    expect(await checks({ ...env, ...at(absent) })).toEqual({ code: 1, found: [{ level: 'error', message }] });
    expect(await logged({ env: at(absent) })).toContainEqual({ level: 'error', message });
    const isFolder = await checks({ ...env, ...at(folder.path) });
    expect(isFolder.found).toEqual([{ level: 'error', message: expect.stringContaining('(Error: EISDIR') }]);
    const fine = join(folder.path, 'seals.ndjson');
    expect(await checks({ ...env, ...at(fine) })).toEqual({ code: 0, found: [] });
    expect(existsSync(fine)).toBe(false);
  });

  it('D1-11: servers that do not respond are named once each, and the other checks are made', async () => {
    const [database, redis] = await freePorts(2);
    const found = await checks({
      DATABASE_URL: `postgres://me:hidden@127.0.0.1:${database}/rows`,
      REDIS_URL: `redis://127.0.0.1:${redis}`,
      AUDIT_CHECKPOINTS: 'file:/absent/seals.ndjson',
    });
    expect(found).toEqual({
      code: 1,
      found: [
        {
          level: 'fatal',
          message: `the database at 127.0.0.1:${database} does not respond (ECONNREFUSED): start it, or change DATABASE_URL`,
        },
        {
          level: 'error',
          message: expect.stringMatching(
            /^Redis does not respond or rejects commands \(.+\): see docs\/operations\/redis\.md#redis-is-down/,
          ),
        },
        { level: 'error', message: expect.stringContaining('AUDIT_CHECKPOINTS') },
      ],
    });
  });
});

const reason = whyNoSmallDisk();

describe.skipIf(reason !== undefined)(`a small disk${reason ? ` [${reason}]` : ''}`, () => {
  it('D1-11: a disk without space for the spool is named by a start and by config check, also before the folder exists', async () => {
    await using disk = await smallDisk(80 * MIB);
    const env = { AUDIT_SPOOL_DIR: join(disk.path, 'not', 'yet') };
    const message = (free: string) =>
      expect.stringMatching(`^the disk of ${disk.path} has ${free} MiB free; the audit spool may need 1024 MiB`);
    expect(await checks(env)).toEqual({ code: 0, found: [{ level: 'warn', message: message('(?:79|80)') }] });
    await disk.fill(MIB);
    expect(await checks(env)).toEqual({ code: 1, found: [{ level: 'error', message: message('[01]') }] });
    await using folder = await startedFolder();
    const spool = { AUDIT_SPOOL_DIR: join(disk.inside, 'spool') };
    await using instance = await startInstance({ DATA_DIR: folder.path, ...spool }, undefined, disk.through);
    expect(instance.stdout()).toMatch(/"level":"error".*"msg":"the disk of \S+\/spool has [01] MiB free; /);
    const file = await checks({ AUDIT_SPOOL_DIR: join(disk.path, 'filler', 'spool') });
    expect(file.found).toEqual([
      { level: 'fatal', message: expect.stringContaining('AUDIT_SPOOL_DIR must be writable') },
    ]);
  });
});

describeReal(['postgres', 'redis', 'kafka'], 'the topics', () => {
  it('D1-11: config check --connect names missing topics, and topics with few partitions', async () => {
    await using redis = await freshRedis();
    await using roles = await twoRoles();
    await migrateWith(roles);
    const prefix = topicPrefix();
    const env = {
      DATABASE_URL: roles.service,
      REDIS_URL: redis.url,
      KAFKA_BROKERS: serviceAddress('kafka'),
      TOPIC_PREFIX: prefix,
    };
    const missing = `Kafka lacks the topics ${ALL_TOPICS.join(', ')}: run portcullis migrate`;
    expect(await checks(env)).toEqual({ code: 1, found: [{ level: 'fatal', message: missing }] });
    await createTopics(env.KAFKA_BROKERS, prefix, ALL_TOPICS);
    try {
      const { code, found } = await checks(env);
      expect(code).toBe(0);
      expect(found).toEqual([
        {
          level: 'warn',
          message: expect.stringMatching(/^fewer than 12 partitions, so that .* consume: transactions\.admin, /),
        },
      ]);
      expect(found[0].message).not.toContain('.dlq');
    } finally {
      await deleteTopics(env.KAFKA_BROKERS, prefix);
    }
  });
});
