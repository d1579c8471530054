import { type EntitySchema, UnderscoreNamingStrategy } from '@mikro-orm/core';
import type { InferKyselyDB } from '@mikro-orm/sql';
import * as access from './access.entity.ts';
import * as accounts from './accounts.entity.ts';
import * as assets from './assets.entity.ts';
import * as audit from './audit.entity.ts';
import * as events from './events.entity.ts';
import * as idempotency from './idempotency.entity.ts';
import * as operations from './operations.entity.ts';
import * as reference from './reference.entity.ts';
import { MAX_LENGTHS, MAX_SIZES } from './text-lengths.ts';
import * as transactions from './transactions.entity.ts';
import * as userMigrations from './user-migrations.entity.ts';
import * as users from './users.entity.ts';
import * as walletRules from './wallet-rules.entity.ts';
import * as wallets from './wallets.entity.ts';

/** The entities of all tables of the database: all that the files `*.entity.ts` export. */
export const entities = [
  ...Object.values(access),
  ...Object.values(accounts),
  ...Object.values(assets),
  ...Object.values(audit),
  ...Object.values(events),
  ...Object.values(idempotency),
  ...Object.values(operations),
  ...Object.values(reference),
  ...Object.values(transactions),
  ...Object.values(userMigrations),
  ...Object.values(users),
  ...Object.values(walletRules),
  ...Object.values(wallets),
];

/** The types of all tables for Kysely: column names, and the values that are read and written. */
export type Tables = InferKyselyDB<(typeof entities)[number]>;

const LIMITS: readonly (readonly [Record<string, Record<string, number>>, (column: string) => string, string])[] = [
  [MAX_LENGTHS, (column) => `char_length(${column})`, 'length'],
  [MAX_SIZES, (column) => `octet_length(${column}::text)`, 'size'],
];
for (const { meta } of entities as readonly EntitySchema[]) {
  for (const [limits, measure, suffix] of LIMITS) {
    for (const [column, max] of Object.entries(limits[meta.tableName] ?? {})) {
      meta.checks.push({ name: `${meta.tableName}_${column}_${suffix}`, expression: `${measure(column)} <= ${max}` });
    }
  }
}

const SUFFIXES: Record<string, string> = { foreign: 'fkey', unique: 'key' };

/** Names constraints as PostgreSQL names those that a migration leaves unnamed. */
export class ConstraintNames extends UnderscoreNamingStrategy {
  override indexName(table: string, columns: string[], type: Parameters<UnderscoreNamingStrategy['indexName']>[2]) {
    return SUFFIXES[type] ? [table, ...columns, SUFFIXES[type]].join('_') : super.indexName(table, columns, type);
  }
}
