import { randomUUID } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { cli } from '../../src/cli/cli.ts';
import { asOwner } from '../support/harness/database-roles.ts';
import { startPortcullis } from '../support/harness.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

/** Builds an index of audit records, for which it needs a lock that writers of them do not share. */
const MIGRATION = 'migration-20261124-audit-correlation';

/** Starts `portcullis migrate`; `text` grows. */
function migrating(env: Record<string, string>) {
  const text = { out: '', err: '' };
  const code = cli(['migrate'], env, {
    out: (part) => {
      text.out += part;
    },
    err: (part) => {
      text.err += part;
    },
  });
  return { text, code };
}

describeReal('postgres', 'migrating beside traffic', () => {
  it('D1-11: while a transaction holds a lock, requests are recorded, migrate says who holds it, a second one waits for the first, and both end when the transaction does', async () => {
    await using p = await startPortcullis();
    await asOwner(p, async (door) => {
      await door.raw((sql) => sql`drop index audit_records_correlation`);
      await door.raw((sql) => sql`delete from mikro_orm_migrations where name = ${MIGRATION}`);
    });
    const { DATABASE_URL: url = '' } = p.env;
    const { username, password } = new URL(serviceAddress('postgres'));
    const owner = Object.assign(new URL(url), { username, password }).href;
    const env = { DATA_DIR: p.dataDir, DATABASE_URL: url, MIGRATE_DATABASE_URL: owner };
    const report = new URL(url);
    report.searchParams.set('application_name', 'monthly report');
    const token = await p.clientToken();
    const recorded = async () => {
      const id = randomUUID();
      const { status } = await p.call('GET', '/v1/accounts', { token, headers: { 'x-correlation-id': id } });
      expect(status).toBe(200);
      await vi.waitFor(
        async () => {
          const rows = await p.service.context.database.db
            .unscoped('test')
            .run((k) => k.selectFrom('audit_records').select('id').where('correlation_id', '=', id));
          expect(rows).toHaveLength(1);
        },
        { timeout: 10_000, interval: 20 },
      );
    };

    const both = await withPostgres(report.href, async (client) => {
      await client.query('begin');
      await client.query('insert into audit_records select * from audit_records limit 0');
      const [session] = (await client.query('select pg_backend_pid() as pid')).rows;
      const first = migrating(env);
      const who = `held by pid ${session?.pid} \\(application "monthly report", user ${new URL(url).username}; in a transaction since \\S+Z, idle in transaction since \\S+Z\\)`;
      const fix = `Requests go on meanwhile; to end that session: select pg_terminate_backend\\(${session?.pid}\\)\n`;
      const waits = new RegExp(`^waiting for ShareLock on audit_records, ${who}. ${fix}$`);
      await vi.waitFor(() => expect(first.text.err).toMatch(waits), { timeout: 15_000 });
      const second = migrating(env);
      await vi.waitFor(
        () => expect(second.text.err).toMatch(/^waiting for the lock of another migration, held by pid \d+ /),
        {
          timeout: 15_000,
        },
      );
      for (let request = 0; request < 10; request += 1) await recorded();
      // It is said once, not with each attempt.
      expect(first.text.err).toMatch(waits);
      expect([first.text.out, second.text.out]).toEqual(['', '']);
      await client.query('rollback');
      return [first, second];
    });
    expect(await Promise.all(both.map(({ code }) => code))).toEqual([0, 0]);
    expect(both.map(({ text }) => text.out.split('\n')[0])).toEqual([
      `New migrations: ${MIGRATION}`,
      'No new migrations.',
    ]);
    await recorded();
  });
});
