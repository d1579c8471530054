import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { LoginLocks } from '../../src/access/credentials/login-locks.ts';
import { Supervisors } from '../../src/access/supervisors/supervisors.service.ts';
import { renameUser, UserPages, UserStore } from '../../src/features/users/users.service.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const USER = 'bbbbbbbb-0000-4000-8000-000000000001';

const FILL = [
  `insert into nodes (id, name) values ('${NODE}', 'node')`,
  `insert into users (id, node_id, email, external_id, name, surname, address, created_at)
    select gen_random_uuid(), '${NODE}', case n % 10 when 0 then 'Jürgen' else 'Ada' end || n || '@example.com', n::text, 'n', 's',
      '0x' || n, now() - n * interval '1 second'
    from generate_series(1, 5000) n`,
  `insert into users (id, node_id, email, address) values ('${USER}', '${NODE}', 'νίκος@example.gr', '0x')`,
  `insert into supervisors (id, node_id, username, password_hash, role)
    select gen_random_uuid(), '${NODE}', 'Supervisor ' || n, '', 'viewer' from generate_series(1, 5000) n`,
  `insert into login_failures (id, node_id, username, failed_at)
    select gen_random_uuid(), '${NODE}', 'supervisor ' || n % 1000, now() from generate_series(1, 5000) n`,
  'vacuum (analyze) users, supervisors, login_failures',
];

describeReal('postgres', 'the queries that compare identifiers', () => {
  const fixture = beforeTests(async () => {
    const database = await realDatabase();
    await withPostgres(database.url, async (client) => {
      for (const statement of FILL) await client.query(statement);
    });
    return { database, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
  });

  /** Returns the plans, whatever the values, of the statements with a text that some work sends. */
  async function plansOf(part: string, work: () => Promise<unknown>): Promise<string[]> {
    const submit = vi.spyOn(pg.Query.prototype, 'submit');
    await work();
    const sent = submit.mock.contexts as unknown as { text: string }[];
    const texts = new Set(sent.map(({ text }) => text).filter((text) => text.includes(part)));
    submit.mockRestore();
    return withPostgres(fixture.database.url, async (client) => {
      await client.query('set enable_sort = off');
      const plans: string[] = [];
      for (const text of texts) {
        const { rows } = await client.query(`explain (generic_plan) ${text}`);
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      }
      return plans;
    });
  }

  const work: Record<string, [part: string, index: string, work: () => Promise<unknown>]> = {
    'uniqueness of emails': [
      'with ordinality',
      'users_email_key',
      () => {
        const { db } = fixture.database;
        const asked = { email: 'ada1@example.com', externalId: null, address: null };
        return db.transaction(() => new UserStore(db).owners(NODE, [asked]));
      },
    ],
    'another email': [
      'identifier_key',
      'users_email_key',
      () => renameUser(fixture.database.db, NODE, USER, `${randomUUID()}@example.com`),
    ],
    'sign-in': [
      '"supervisors"',
      'supervisors_username_key',
      () => new Supervisors(fixture.database.db).findByUsername(NODE, 'SUPERVISOR 7'),
    ],
    'locks of usernames': [
      'login_failures',
      'login_failures_of_username',
      () => new LoginLocks({ db: fixture.database.db, nowMs: Date.now }).isLocked(NODE, 'SUPERVISOR 7', null),
    ],
    'a page of a search': [
      'identifier_key',
      'users_page',
      () =>
        new UserPages(fixture.database.db).page(
          NODE,
          { search: 'ada' },
          {
            ...{ size: 20, backward: false, before: undefined },
            after: { at: '2020-01-01T00:00:00Z', id: NODE },
          },
        ),
    ],
  };

  it.each(Object.keys(work))('D3-35 D7-11: %s uses an index', async (name) => {
    const [part, index, run] = work[name] ?? ['', '', async () => undefined];
    const plans = (await plansOf(part, run)).filter((plan) => !plan.includes('migration_rows'));
    expect(plans.length).toBeGreaterThan(0);
    for (const plan of plans) {
      expect(plan).toContain(index);
      expect(plan).not.toContain('Seq Scan');
    }
  });
});
