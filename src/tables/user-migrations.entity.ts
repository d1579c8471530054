import { defineEntity, p } from '@mikro-orm/core';

/** What a migration of users can be. */
const MIGRATION_STATUSES = ['running', 'done', 'cancelled', 'failed'] as const;

/** What can become of a row (specification section 2.9). */
const ROW_STATUSES = ['created', 'skipped', 'failed'] as const;

/** A request to migrate users, or a file of them: who, when, and how many became what. */
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

/** A row of a migration: what identified it, and what became of it. `index` counts from 1. */
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
    status: p.text().$type<(typeof ROW_STATUSES)[number]>(),
    reason: p.text().nullable(),
  },
});

/** A part of a file of users; all but the last one of a file have one size. They go when the migration ends. */
export const MigrationFile = defineEntity({
  name: 'MigrationFile',
  tableName: 'migration_files',
  properties: {
    migrationId: p.uuid().primary(),
    /** From 0. */
    seq: p.integer().primary(),
    nodeId: p.uuid(),
    bytes: p.blob().$type<Uint8Array>(),
    createdAt: p.datetime(6).$type<string>(),
  },
});

/** How far the migration of a file is, until it ends. */
export const MigrationJob = defineEntity({
  name: 'MigrationJob',
  tableName: 'migration_jobs',
  properties: {
    migrationId: p.uuid().primary(),
    nodeId: p.uuid(),
    /** What the columns of the file are, in its order, with commas between. */
    columns: p.text(),
    /** Where the next record begins. */
    bytePosition: p.bigint().$type<string>(),
    /** The index of the next row, from 1. */
    nextIndex: p.integer(),
    /** What its failed rows take (`failedBytesOf`). */
    failedBytes: p.bigint().$type<string>().default('0'),
    /** Of whoever brought the file. */
    correlationId: p.text(),
    /** How often it has failed at this position. */
    attempts: p.integer().default(0),
    leaseOwner: p.uuid().nullable(),
    /** Until then nobody but the owner works at it; those that are free earliest come first. */
    leaseUntil: p.datetime(6).$type<string>(),
  },
});
