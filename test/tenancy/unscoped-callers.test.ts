import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');

/** Who goes around the tenant's door, and how often. A new line here is a decision: may its statement see every node? */
const CALLERS = {
  'src/features/clients/client-administration.service.ts': 1,
  'src/access/clients/clients.service.ts': 1,
  'src/features/audit-records/audit-records.service.ts': 1,
  'src/access/limits/quota-counts.ts': 2,
  'src/access/revocation/access-changes.ts': 2,
  'src/access/revocation/access-cache.ts': 4,
  'src/access/revocation/sessions.ts': 1,
  'src/access/tokens/revocations.ts': 1,
  'src/app/database-roles.ts': 1,
  'src/app/demo/ensure-demo.ts': 4,
  'src/app/operations.ts': 1,
  'src/app/stores.ts': 1,
  'src/audit/audit-filter.ts': 1,
  'src/audit/audit-retention.ts': 2,
  'src/audit/audit-writer.ts': 1,
  'src/audit/seals.ts': 2,
  'src/audit/erasure.ts': 2,
  'src/audit/export/record-export.ts': 1,
  'src/audit/verification/redaction.ts': 1,
  'src/audit/verification/verification.ts': 1,
  'src/cli/commands/audit-evidence.ts': 2,
  'src/cli/commands/users.ts': 1,
  'src/cli/commands/installation.ts': 1,
  'src/cli/kit/open-services.ts': 3,
  'src/idempotency/idempotent-responses.ts': 2,
  'src/features/reference/reference.store.ts': 1,
  'src/features/status/status.service.ts': 4,
  'src/features/transactions/asset-settlement.service.ts': 1,
  'src/features/transactions/transactions.store.ts': 2,
  'src/features/user-migrations/migrations.store.ts': 4,
  'src/features/users/users.service.ts': 1,
  'src/access/identity/authors.ts': 1,
  'src/events/bus/embedded-bus.ts': 1,
  'src/events/bus/replay.ts': 1,
  'src/events/outbox/outbox.ts': 1,
  'src/events/streams/event-log.ts': 4,
  'src/platform/database/open-database.ts': 3,
  'src/platform/database/identifier-column.ts': 2,
  'src/platform/database/schema-migrations.ts': 3,
  'src/platform/database/instance-link.ts': 1,
};

it('D4-01: only these files run statements that are not scoped to a node', () => {
  const callers: Record<string, number> = {};
  for (const file of globSync('src/**/*.ts', { cwd: ROOT }).sort()) {
    const calls = readFileSync(join(ROOT, file), 'utf8').match(/\.\s*unscoped\s*\(/g)?.length ?? 0;
    if (calls > 0) callers[file] = calls;
  }
  expect(callers).toEqual(CALLERS);
});

it('D4-01: only these files bypass both database handles', () => {
  const around = globSync('src/**/*.ts', { cwd: ROOT })
    .filter((file) =>
      /\bnew Kysely\b|\.\s*(?:getKysely|getConnection|getExecutor|getDriver)/.test(
        readFileSync(join(ROOT, file), 'utf8'),
      ),
    )
    .sort();
  expect(around).toEqual(['src/platform/database/database.ts', 'src/platform/database/open-database.ts']);
});
