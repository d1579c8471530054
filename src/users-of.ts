import { setTimeout } from 'node:timers/promises';
import { AUDIT_DELAY_MS } from './audit/audit-writer.ts';
import type { Context } from './context.ts';
import { IdempotentAnswers } from './idempotency/idempotent-answers.ts';
import { OutboxRelay } from './outbox/outbox-relay.ts';
import { MigrationFiles } from './user-migrations/migration-files.service.ts';
import { MigrationJobs } from './user-migrations/migration-jobs.ts';
import { UserMigrations } from './user-migrations/user-migrations.service.ts';
import { UserErasure } from './users/user-erasure.service.ts';

type UserParts = Pick<Context, 'database' | 'bus' | 'log' | 'nowMs' | 'auditWriter'>;

/** What migrates users, tells of it, and remembers what it has answered. */
export function openUsers({ database, bus, log, nowMs, auditWriter }: UserParts) {
  const { db, isEmbedded } = database;
  const outbox = new OutboxRelay({ db, bus, isAlone: isEmbedded, log });
  const userMigrations = new UserMigrations({ db, log, nowMs, notify: () => outbox.notify() });
  const migrationJobs = new MigrationJobs({ db, log, nowMs, userMigrations });
  return {
    outbox,
    idempotentAnswers: new IdempotentAnswers({ db, nowMs }),
    userMigrations,
    migrationFiles: new MigrationFiles({ db, nowMs, notify: () => migrationJobs.notify() }),
    migrationJobs,
    userErasure: new UserErasure({
      db,
      nowMs,
      // Other replicas have spools of their own.
      auditSettled: () => (isEmbedded ? auditWriter.flush() : setTimeout(AUDIT_DELAY_MS)),
    }),
  };
}
