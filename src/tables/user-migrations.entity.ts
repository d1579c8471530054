import { defineEntity, p } from '@mikro-orm/core';

/** The states of a user migration. */
const MIGRATION_STATUSES = ['running', 'done', 'cancelled', 'failed'] as const;

/** The outcomes of one row of a user migration (specification section 2.9). */
const ROW_STATUSES = ['created', 'skipped', 'failed'] as const;

/** A user migration, from a request or a file: who started it, when, and the number of rows by outcome. */
export const Migration = defineEntity({
  name: 'Migration',
  tableName: 'migrations',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    status: p.text().$type<(typeof MIGRATION_STATUSES)[number]>(),
    total: p.integer().default(0),
    success: p.integer().default(0),
    skipped: p.integer().default(0),
    failed: p.integer().default(0),
    createdBy: p.text(),
    createdAt: p.datetime(6).$type<string>(),
    finishedAt: p.datetime(6).$type<string>().nullable(),
  },
});

/** A row outcome of a user migration: what identifies the user, and what became of the row. `index` counts from 1. */
export const MigrationRow = defineEntity({
  name: 'MigrationRow',
  tableName: 'migration_rows',
  properties: {
    migrationId: p.uuid().primary(),
    index: p.integer().primary(),
    nodeId: p.uuid(),
    email: p.text().nullable(),
    externalId: p.text().nullable(),
    userId: p.uuid().nullable(),
    /** The ids of the users that the row created or matched; null for a row of release 0.1.0. */
    notedUsers: p.array().columnType('uuid[]').$type<readonly string[]>().nullable(),
    status: p.text().$type<(typeof ROW_STATUSES)[number]>(),
    reason: p.text().nullable(),
  },
});

/**
 * A chunk of an uploaded file of users. All chunks of a file but the last have the same size; they are deleted when the
 * migration ends.
 */
export const MigrationFile = defineEntity({
  name: 'MigrationFile',
  tableName: 'migration_files',
  properties: {
    migrationId: p.uuid().primary(),
    /** The number of the chunk in its file, from 0. */
    seq: p.integer().primary(),
    nodeId: p.uuid(),
    bytes: p.blob().$type<Uint8Array>(),
    createdAt: p.datetime(6).$type<string>(),
  },
});

/** The progress of a user migration from a file; the row is deleted when the migration ends. */
export const MigrationJob = defineEntity({
  name: 'MigrationJob',
  tableName: 'migration_jobs',
  properties: {
    migrationId: p.uuid().primary(),
    nodeId: p.uuid(),
    /** The names of the columns of the file, in its order, separated by commas. */
    columns: p.text(),
    /** The offset in the file at which the next CSV record begins, in bytes. */
    bytePosition: p.bigint().$type<string>(),
    /** The index of the next row, from 1. */
    nextIndex: p.integer(),
    /** The bytes that storing the failed rows of the file takes so far, as `failedBytesOf` computes them. */
    failedBytes: p.bigint().$type<string>().default('0'),
    /** The correlation id of the request that uploaded the file. */
    correlationId: p.text(),
    /** The number of failed attempts at this position. */
    attempts: p.integer().default(0),
    leaseOwner: p.uuid().nullable(),
    /**
     * The time at which the lease of `leaseOwner` expires; before it, no other process may work at the job. Without an
     * owner, the time from which the job may be taken. Jobs that became free earliest are taken first.
     */
    leaseUntil: p.datetime(6).$type<string>(),
  },
});
