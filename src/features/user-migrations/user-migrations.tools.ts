import { z } from 'zod';
import {
  defineTool,
  idempotencyKey,
  idempotentCall,
  listPage,
  objectSchema,
  type PageArguments,
  pageArguments,
  pageOutput,
  publishedSchemas,
  type Schema,
  type ToolCall,
} from '../../api/mcp/kit/tool.ts';
import { instant, uuid } from '../../lib/fields.ts';
import { objectInput, uuidInput } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { ofOneOwner } from '../../platform/database/keyset-list.ts';
import { invalidInput, orNotFound } from '../../platform/errors.ts';
import { bulkRows, migrateUsersInput } from './migration.input.ts';
import type { MigrationRowRow } from './migration-files.service.ts';
import type { MigrationTableRow } from './migrations.store.ts';

publishedSchemas.set(bulkRows, () => ({ items: objectSchema(bulkRows.out.element, 'input') as Schema }));

const migrationRow = z.strictObject({
  index: z.int().meta({ description: 'Its number among the rows, from 1.' }),
  email: z.string().nullable(),
  external_id: z.string().nullable(),
  user_id: uuid().nullable().meta({ description: 'The user that it created.' }),
  status: z.enum(['created', 'skipped', 'failed']),
  reason: z.string().nullable().meta({ description: 'Why no user was created, such as duplicate_email.' }),
});

const migration = z.strictObject({
  id: uuid(),
  status: z
    .enum(['running', 'done', 'cancelled', 'failed'])
    .meta({ description: 'After cancelled or failed, the users that were created remain.' }),
  total: z.int().meta({ description: 'How many rows it has.' }),
  success: z.int().meta({ description: 'Rows that created a user.' }),
  skipped: z.int().meta({ description: 'Rows without an identifier, and duplicates.' }),
  failed: z.int().meta({ description: 'Invalid rows.' }),
  dry_run: z.literal(true).optional(),
  created_by: z.string().meta({ description: 'The client or supervisor that started it.' }),
  created_at: instant(),
  finished_at: instant().nullable().meta({ description: 'null while it is running.' }),
  rows: pageOutput(migrationRow).optional(),
});

function migrationView(row: MigrationTableRow): z.input<typeof migration> {
  const { id, status, total, success, skipped, failed, created_by, created_at, finished_at } = row;
  return {
    ...{ id, status, total, success, skipped, failed },
    ...(row.dry_run ? { dry_run: true as const } : {}),
    ...{ created_by, created_at: isoFromPg(created_at), finished_at: finished_at && isoFromPg(finished_at) },
  };
}

/** Returns the view of a migration with a page of its rows. */
async function migrationWithRows(migrated: MigrationTableRow, page: PageArguments, call: ToolCall) {
  const rows = await listPage(page, call, {
    tool: 'get_migration',
    list: ({ migrationPages }) => ofOneOwner(migrationPages.rows),
    filter: migrated.id,
    viewOf: ({ index, email, external_id, user_id, status, reason }: MigrationRowRow) => ({
      index,
      email,
      external_id,
      user_id,
      status,
      reason,
    }),
  });
  return { ...migrationView(migrated), rows };
}

const LATEST = { size: 1, backward: false, after: undefined, before: undefined };

export const migrationTools = [
  defineTool({
    name: 'migrate_users',
    title: 'Migrate 1 to 500 users',
    description:
      'Creates users that already have a wallet on the chain. Unless kyc_sent is true, a KYC token is sent to the wallet. A duplicate or invalid row does not stop the others: rows has the outcome of the first 20, get_migration of all.',
    scope: 'users:migrate',
    writes: { destructiveHint: false, idempotentHint: false },
    input: objectInput({
      ...migrateUsersInput.out.shape,
      dry_run: z.boolean('must be a boolean').optional(),
      idempotency_key: idempotencyKey,
    }),
    describes: {
      dry_run: 'Only decide the outcomes.',
      users: 'The users, one or many.',
      'users.wallet_address': "The address of the user's wallet on the chain; stored trimmed and in lower case.",
      'users.email':
        'Unique within the tenant; letter case, blanks around it and invisible characters do not count. Either email or external_id is required.',
      'users.external_id': 'Your own identifier, unique within the tenant.',
      'users.name': 'The given name.',
      'users.surname': 'The family name.',
      'users.kyc_sent': 'Whether the KYC token was already sent; the user is then verified.',
    },
    output: migration,
    run({ idempotency_key: key, dry_run: isDryRun, users }, call) {
      if (isDryRun && key !== undefined) throw invalidInput('idempotency_key', 'must be omitted in a dry run');
      const { userMigrations } = call.services;
      const work = async () =>
        migrationWithRows(await userMigrations.migrateMany(call.caller, users, isDryRun), {}, call);
      const wrapTransaction = <Outcome>(run: () => Promise<Outcome>) =>
        userMigrations.exclusively(call.caller.nodeId, run);
      return idempotentCall(call, { name: 'migrate_users', key, input: users, work, wrapTransaction });
    },
  }),
  defineTool({
    name: 'get_migration',
    title: 'Get a user migration',
    description:
      'Returns a migration of users with its status and counts: the latest, or the one with migration_id. While it is running, call again every few seconds.',
    scope: 'users:read',
    input: objectInput({
      migration_id: uuidInput().optional().meta({ description: 'From migrate_users; the latest by default.' }),
      rows: pageArguments.limit.meta({ description: 'How many of its rows to include; none by default.' }),
      cursor: pageArguments.cursor,
    }),
    output: migration,
    missing: 'this tenant has no migration with that migration_id, or none at all',
    async run({ migration_id: id, rows, cursor }, call) {
      const { nodeId } = call.caller;
      const { migrationPages } = call.services;
      const latest = async () => (await migrationPages.page(nodeId, {}, LATEST)).rows[0];
      const migration = orNotFound(await (id === undefined ? latest() : migrationPages.find(nodeId, id)));
      const isWhole = rows !== undefined || cursor !== undefined;
      return isWhole ? migrationWithRows(migration, { limit: rows, cursor }, call) : migrationView(migration);
    },
  }),
];
