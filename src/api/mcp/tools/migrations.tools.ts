import { z } from 'zod';
import { migrateUserInput, migrateUsersInput } from '../../../domain/user-migrations/migration.input.ts';
import type { SkipReason } from '../../../domain/user-migrations/migration-outcome.rules.ts';
import type { MigrationRowRow, MigrationTableRow } from '../../../domain/user-migrations/migration-pages.service.ts';
import { objectInput, textInput, uuidInput } from '../../../lib/input.ts';
import { isoFromPg, isoFromPgOrNull } from '../../../lib/instants.ts';
import { ofOneOwner } from '../../../platform/database/keyset-list.ts';
import { Refusal } from '../../../platform/errors.ts';
import { idempotencyKey, idempotentCall } from '../kit/idempotent-call.ts';
import type { Descriptions } from '../kit/json-schema.ts';
import { instant, listPage, pageArguments, pageOutput, uuid } from '../kit/list-tools.ts';
import { defineTool, found, invalidArguments, ToolError } from '../kit/tool.ts';
import { user, userView } from './users.tools.ts';

const migration = z.strictObject({
  id: uuid(),
  status: z
    .enum(['running', 'done', 'cancelled', 'failed'])
    .meta({ description: 'cancelled, failed: users that it created stay.' }),
  total: z.int().meta({ description: 'How many rows it has.' }),
  success: z.int().meta({ description: 'Rows that created a user.' }),
  skipped: z.int().meta({ description: 'Rows without an identifier, and duplicates.' }),
  failed: z.int().meta({ description: 'Rows that are not valid.' }),
  created_by: z.string().meta({ description: 'The client or supervisor who asked for it.' }),
  created_at: instant(),
  finished_at: instant().nullable().meta({ description: 'null while it runs.' }),
});

const migrationRow = z.strictObject({
  index: z.int().meta({ description: 'Its number among the rows, from 1.' }),
  email: z.string().nullable(),
  external_id: z.string().nullable(),
  user_id: uuid().nullable().meta({ description: 'The user that it created.' }),
  status: z.string().meta({ description: 'created, skipped or failed.' }),
  reason: z.string().nullable().meta({ description: 'Why it created no user, such as duplicate_email.' }),
});

const migrationId = uuidInput().meta({ description: 'The id, from list_migrations.' });
const missing = 'this node has no migration with that migration_id: take it from list_migrations';

/** Returns the view of a user migration that agents see. */
function migrationView(row: MigrationTableRow): z.input<typeof migration> {
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

const USER_MEMBERS: Descriptions = {
  wallet_address: "The address of the user's wallet on the chain: up to 128 characters; trimmed and lower-cased.",
  email: 'Unique in the node in any letter case; trimmed. One of email and external_id is needed.',
  external_id: 'An identifier of your own, unique in the node. One of email and external_id is needed.',
  name: 'The given name.',
  surname: 'The family name.',
  kyc_sent: 'Whether the KYC token was sent already: the user is verified then, and none is sent.',
};

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text, 'utf8');
}

/** What the agent is told for each reason why a user is skipped. */
const SKIPPED: Readonly<Record<SkipReason, string>> = {
  missing_email_and_external_id: 'one of email and external_id is required',
  duplicate_email: taken('email'),
  duplicate_external_id: taken('external_id'),
  duplicate_wallet: taken('wallet_address'),
};

function taken(member: string): string {
  return `a user of the node has that ${member}: list_users with search finds who`;
}

export const migrationTools = [
  defineTool({
    name: 'list_migrations',
    title: 'List user migrations',
    description: "The node's migrations of users, newest first, with their counts.",
    scope: 'users:read',
    input: objectInput(pageArguments),
    output: pageOutput(migration),
    run: (page, call) =>
      listPage(page, call, {
        tool: 'list_migrations',
        list: ({ migrationPages }) => migrationPages,
        filter: {},
        viewOf: migrationView,
      }),
  }),
  defineTool({
    name: 'get_migration',
    title: 'Get a user migration',
    description:
      'One migration by its id, with its status. While that is running, call again every few seconds; list_migration_rows has the outcome of each row.',
    scope: 'users:read',
    input: objectInput({ migration_id: migrationId }),
    output: migration,
    missing,
    run: async ({ migration_id: id }, { caller, services }) =>
      migrationView(found(await services.migrationPages.find(caller.nodeId, id))),
  }),
  defineTool({
    name: 'list_migration_rows',
    title: 'List the rows of a user migration',
    description: 'The rows of a migration in order: the user that each created, or why it created none.',
    scope: 'users:read',
    input: objectInput({ migration_id: migrationId, ...pageArguments }),
    output: pageOutput(migrationRow),
    missing,
    async run({ migration_id: id, ...page }, call) {
      found(await call.services.migrationPages.find(call.caller.nodeId, id));
      return listPage(page, call, {
        tool: 'list_migration_rows',
        list: ({ migrationPages }) => ofOneOwner(migrationPages.rows),
        filter: id,
        viewOf: rowView,
      });
    },
  }),
  defineTool({
    name: 'migrate_user',
    title: 'Migrate a user',
    description:
      'Creates a user who already has a wallet on the chain. Unless kyc_sent is true, a KYC token is sent to the wallet. A user whose email, external_id or wallet_address the node already has is refused as a duplicate. For several, use migrate_users.',
    scope: 'users:migrate',
    effect: { isDestructive: false, isIdempotent: false },
    input: objectInput({ ...migrateUserInput.out.shape, idempotency_key: idempotencyKey }),
    describes: USER_MEMBERS,
    output: user,
    run({ idempotency_key: key, ...input }, call) {
      const { userMigrations } = call.services;
      const work = async () => {
        const migrated = await userMigrations.migrateOne(call.caller, input);
        if ('skipped' in migrated) throw new ToolError({ code: migrated.skipped, message: SKIPPED[migrated.skipped] });
        return userView(migrated.user);
      };
      const around = <Outcome>(run: () => Promise<Outcome>) => userMigrations.exclusively(call.caller.nodeId, run);
      return idempotentCall(call, { name: 'migrate_user', key, input, work, around });
    },
  }),
  defineTool({
    name: 'migrate_users',
    title: 'Migrate up to 500 users',
    description:
      'Creates 1 to 500 users at once, as migrate_user does each. A duplicate or invalid row does not stop the others: skipped and failed count them, and list_migration_rows says why. For more users, use start_user_migration.',
    scope: 'users:migrate',
    effect: { isDestructive: false, isIdempotent: false },
    input: objectInput({ ...migrateUsersInput.out.shape, idempotency_key: idempotencyKey }),
    describes: {
      users: 'Users, each with the arguments of migrate_user.',
      ...Object.fromEntries(Object.entries(USER_MEMBERS).map(([name, text]) => [`users.${name}`, text])),
    },
    output: migration,
    run({ idempotency_key: key, users }, call) {
      const { userMigrations } = call.services;
      const work = async () => migrationView(await userMigrations.migrateMany(call.caller, users));
      const around = <Outcome>(run: () => Promise<Outcome>) => userMigrations.exclusively(call.caller.nodeId, run);
      return idempotentCall(call, { name: 'migrate_users', key, input: users, work, around });
    },
  }),
  defineTool({
    name: 'start_user_migration',
    title: 'Migrate a file of users',
    description:
      'Migrates users from CSV in the background; returns at once. get_migration has its status, cancel_user_migration stops it. Another call starts another migration, whose users are duplicates of the first.',
    scope: 'users:migrate',
    effect: { isDestructive: false, isIdempotent: false },
    input: objectInput({
      csv: textInput().meta({
        description:
          'The file: a header of wallet_address, email, external_id, name, surname, kyc_sent (any order, wallet_address needed) and a line for each user; up to 1 MiB.',
      }),
    }),
    output: migration,
    async run({ csv }, call) {
      try {
        return migrationView(await call.services.migrationFiles.start(call.caller, bytesOf(csv)));
      } catch (error) {
        if (!(error instanceof Refusal) || error.code !== 'invalid_input') throw error;
        throw invalidArguments([{ path: 'csv', message: error.message }]);
      }
    },
  }),
  defineTool({
    name: 'cancel_user_migration',
    title: 'Cancel a user migration',
    description: 'Cancels a running migration; users that it created stay. Repeating it has no effect.',
    scope: 'users:migrate',
    effect: { isDestructive: true, isIdempotent: true },
    input: objectInput({ migration_id: migrationId }),
    output: migration,
    missing,
    run: async ({ migration_id: id }, { caller, services }) =>
      migrationView(await services.migrationFiles.cancel(caller.nodeId, id)),
  }),
];
