import { z } from 'zod';
import { notFoundRefusal } from '../../errors/refusal.ts';
import { objectInput, uuidInput } from '../../lib/input.ts';
import { isoFromPg, isoFromPgOrNull } from '../../lib/pg-time.ts';
import type { MigrationRowRow, MigrationTableRow } from '../../user-migrations/migration-pages.service.ts';
import { instant, placeOf, uuid } from '../members.ts';
import { listPage, pageArguments, pageOutput } from '../pages.ts';
import { defineTool } from '../tool.ts';

export const migration = z.strictObject({
  id: uuid(),
  status: z
    .enum(['running', 'done', 'cancelled', 'failed'])
    .meta({ description: 'cancelled, failed: what was applied before stays.' }),
  total: z.int().meta({ description: 'How many rows it has.' }),
  success: z.int().meta({ description: 'Rows that became users.' }),
  skipped: z.int().meta({ description: 'Rows without an identifier, and duplicates.' }),
  failed: z.int().meta({ description: 'Rows that are not valid.' }),
  created_by: z.string().meta({ description: 'The client or supervisor who asked for it.' }),
  created_at: instant(),
  finished_at: instant().nullable().meta({ description: 'null while it runs.' }),
});

const migrationRow = z.strictObject({
  index: z.int().meta({ description: 'Its place among the rows, from 1.' }),
  email: z.string().nullable(),
  external_id: z.string().nullable(),
  user_id: uuid().nullable().meta({ description: 'The user that it became.' }),
  status: z.string().meta({ description: 'created, skipped or failed.' }),
  reason: z.string().nullable().meta({ description: 'Why it became no user, such as duplicate_email.' }),
});

export const migrationId = uuidInput().meta({ description: 'From list_migrations.' });
export const missing = 'this node has no migration with that migration_id: take it from list_migrations';

const listMigrations = defineTool({
  name: 'list_migrations',
  title: 'List user migrations',
  description: "The node's migrations of users, newest first, with their counts.",
  scope: 'users:read',
  input: objectInput(pageArguments),
  output: pageOutput(migration),
  run(page, call) {
    const { migrationPages } = call.services;
    const { nodeId } = call.caller;
    return listPage(page, call, {
      list: 'list_migrations',
      read: (request) => migrationPages.page(nodeId, request),
      keyOf: placeOf,
      viewOf: migrationView,
      count: () => migrationPages.count(nodeId),
    });
  },
});

const getMigration = defineTool({
  name: 'get_migration',
  title: 'Get a user migration',
  description:
    'One migration by its id: how far it is. While its status is running, call again every few seconds; what became of each row is told by list_migration_rows.',
  scope: 'users:read',
  input: objectInput({ migration_id: migrationId }),
  output: migration,
  missing,
  async run({ migration_id: id }, { caller, services }) {
    const row = await services.migrationPages.find(caller.nodeId, id);
    if (!row) throw notFoundRefusal();
    return migrationView(row);
  },
});

const listMigrationRows = defineTool({
  name: 'list_migration_rows',
  title: 'List the rows of a user migration',
  description: 'Each row of a migration in order: the user that it became, or why it became none.',
  scope: 'users:read',
  input: objectInput({ migration_id: migrationId, ...pageArguments }),
  output: pageOutput(migrationRow),
  missing,
  async run({ migration_id: id, ...page }, call) {
    const { migrationPages } = call.services;
    const { nodeId } = call.caller;
    if (!(await migrationPages.find(nodeId, id))) throw notFoundRefusal();
    return listPage(page, call, {
      list: 'list_migration_rows',
      read: async (request) => (await migrationPages.rowsOf(nodeId, [id], request)).get(id),
      keyOf: ({ index }) => ({ at: String(index), id: '' }),
      viewOf: rowView,
      count: async () => (await migrationPages.countRowsOf(nodeId, [id])).get(id) ?? 0,
    });
  },
});

/** A migration as agents see it. */
export function migrationView(row: MigrationTableRow): z.input<typeof migration> {
  const { id, status, total, success, skipped, failed, created_by, created_at, finished_at } = row;
  return {
    ...{ id, status, total, success, skipped, failed, created_by },
    created_at: isoFromPg(created_at),
    finished_at: isoFromPgOrNull(finished_at),
  };
}

function rowView({
  index,
  email,
  external_id,
  user_id,
  status,
  reason,
}: MigrationRowRow): z.input<typeof migrationRow> {
  return { index, email, external_id, user_id, status, reason };
}

export const migrationTools = [listMigrations, getMigration, listMigrationRows];
