import { defineEntity, p } from '@mikro-orm/core';
import { ofNode, withinNode } from './references.ts';

/** A user migration, from a request or a file: who started it, when, and the number of rows by outcome. */
export const Migration = defineEntity({
  name: 'Migration',
  tableName: 'migrations',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
    status: p.enum(['running', 'done', 'cancelled', 'failed']),
    total: p.integer().default(0),
    success: p.integer().default(0),
    skipped: p.integer().default(0),
    failed: p.integer().default(0),
    /** Whether the outcomes of the rows were only decided, and no user was created. */
    dryRun: p.boolean().default(false),
    /** What the file is called, as who started it says. */
    fileName: p.text().nullable(),
    createdBy: p.text(),
    createdAt: p.datetime(6).$type<string>(),
    finishedAt: p.datetime(6).$type<string>().nullable(),
  },
  uniques: [{ properties: ['nodeId', 'id'] }],
  indexes: [{ name: 'migrations_page', properties: ['nodeId', 'createdAt', 'id'] }],
});

/** A row outcome of a user migration: what identifies the user, and what became of the row. `index` counts from 1. */
export const MigrationRow = defineEntity({
  name: 'MigrationRow',
  tableName: 'migration_rows',
  properties: {
    migrationId: p.uuid().primary(),
    index: p.integer().primary(),
    nodeId: p.uuid(),
    migration: withinNode(Migration, 'migration_id'),
    email: p.text().nullable(),
    externalId: p.text().nullable(),
    userId: p.uuid().nullable(),
    /**
     * The ids of the users that the row created or matched. Null for a row of release 0.1.0, an invalid row of a file,
     * and a row of a dry run that matched none; erasure compares their identifiers.
     */
    notedUsers: p.array().columnType('uuid[]').$type<readonly string[]>().nullable(),
    status: p.enum(['created', 'skipped', 'failed']),
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
    nodeId: ofNode().index('migration_files_node'),
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
    migration: withinNode(Migration, 'migration_id'),
    /** The names of the columns of the file, in its order, separated by commas. */
    columns: p.text(),
    /**
     * The same for a dry run, whose `columns` is empty: a worker of release 0.1.0 then fails its rows and creates no
     * user.
     */
    dryRunColumns: p.text().nullable(),
    /** The offset in the file at which the next CSV record begins, in bytes. */
    bytePosition: p.bigint().$type<string>(),
    /** The index of the next row, from 1. */
    nextIndex: p.integer(),
    /** The bytes that storing the failed rows of the file takes so far, as `failedBytesOf` computes them. */
    failedBytes: p.bigint().$type<string>().defaultRaw('0'),
    /** The correlation id of the request that uploaded the file. */
    correlationId: p.text(),
    /** The number of failed attempts at this position. */
    attempts: p.integer().default(0),
    leaseOwner: p.uuid().nullable(),
    /**
     * The time at which the lease of `leaseOwner` expires; before it, no other process may work at the job. Without an
     * owner, the time from which the job may be taken. Jobs that became free earliest are taken first.
     */
    leaseUntil: p.datetime(6).$type<string>().index('migration_jobs_turn'),
  },
});
