import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');

/** Who goes around the tenant's door, and how often. A new line here is a decision: may its statement see every node? */
const CALLERS = {
  'src/audit/audit-retention.ts': 1,
  'src/audit/audit-store.ts': 1,
  'src/cli/administration.ts': 1,
  'src/cli/commands/audit-list.ts': 1,
  'src/cli/commands/client-list.ts': 1,
  'src/cli/commands/users-erase.ts': 1,
  'src/cli/open-migrations.ts': 1,
  'src/clients/clients.service.ts': 2,
  'src/database.ts': 1,
  'src/demo/seed.ts': 4,
  'src/events/embedded-store.ts': 1,
  'src/events/replay-positions.ts': 1,
  'src/idempotency/idempotent-answers.ts': 3,
  'src/migrate.ts': 2,
  'src/oauth/access-changes.ts': 3,
  'src/oauth/access-directory.ts': 1,
  'src/oauth/database-clock.ts': 1,
  'src/oauth/deny-list.ts': 2,
  'src/oauth/expired-rows.ts': 1,
  'src/oauth/login-locks.ts': 1,
  'src/oauth/client-usage.ts': 2,
  'src/outbox/outbox-store.ts': 1,
  'src/realtime/event-retention.ts': 1,
  'src/reference/reference-store.ts': 1,
  'src/stores.ts': 1,
  'src/telemetry/backlog.ts': 1,
  'src/transactions/asset-effects.ts': 1,
  'src/transactions/event-log.ts': 1,
  'src/transactions/lookup-store.ts': 1,
  'src/transactions/mirror-store.ts': 1,
  'src/user-migrations/migration-file-store.ts': 1,
  'src/user-migrations/migration-job-store.ts': 1,
  'src/user-migrations/migration-store.ts': 1,
  'src/users/kept-texts.ts': 1,
  'src/users/letter-case.ts': 1,
};

it('D4-01: statements of no node are in these files alone', () => {
  const callers: Record<string, number> = {};
  for (const file of globSync('src/**/*.ts', { cwd: ROOT }).sort()) {
    const calls = readFileSync(join(ROOT, file), 'utf8').match(/\.\s*unscoped\s*\(/g)?.length ?? 0;
    if (calls > 0) callers[file] = calls;
  }
  expect(callers).toEqual(CALLERS);
});

it('D4-01: what goes around both doors is in these files alone', () => {
  const around = globSync('src/**/*.ts', { cwd: ROOT })
    .filter((file) =>
      /\.\s*(?:getKysely|getConnection|getExecutor|getDriver|entities\s*\(\s*\))/.test(
        readFileSync(join(ROOT, file), 'utf8'),
      ),
    )
    .sort();
  expect(around).toEqual(['src/lib/tenant-db.ts']);
});
