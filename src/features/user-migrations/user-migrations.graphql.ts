import {
  type Builder,
  connectionOf,
  enumOf,
  implement,
  inputOf,
  needs,
  parsedArgument,
  traits,
} from '../../api/graphql/kit/builder.ts';
import {
  callerOf,
  connectionResolver,
  DuplicateError,
  errorsOf,
  orMember,
  ownedConnectionResolver,
  PreconditionError,
  rowResolver,
  ValidationError,
} from '../../api/graphql/kit/resolvers.ts';
import { boundedTextInput } from '../../lib/input.ts';
import { orNotFound } from '../../platform/errors.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import { CSV_COLUMNS } from './csv.rules.ts';
import { migrateUserInput, migrateUsersInput } from './migration.input.ts';
import type { MigrationProgressRow, MigrationRowRow } from './migration-files.service.ts';
import { type SkipReason, warningOf } from './migration-outcome.rules.ts';
import type { MigrationTableRow } from './migrations.store.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    Migration: MigrationTableRow;
  }
}

/** A mutation of which a tenant runs one at a time. */
const EXCLUSIVE = traits({
  idempotent:
    ({ userMigrations }) =>
    (nodeId, work) =>
      userMigrations.exclusively(nodeId, work),
});

const DRY_RUN = 'Stores the migration with the outcomes that a run would have, and creates no user.';

/** Adds the subscription to the progress of a user migration. */
function addMigrationProgress(builder: Builder): void {
  const progress = implement(
    builder.objectRef<MigrationProgressRow>('MigrationProgress'),
    'The progress of a migration of users.',
    {
      processed: ['Int', 'The number of rows that have an outcome.'],
      total: ['Int?', 'The number of rows; null while it is unknown.'],
      done: ['Boolean', 'Whether this is the last value: the migration is DONE, CANCELLED or FAILED.'],
    },
    (t) => ({
      migration: t.field({
        type: 'Migration',
        ...needs('users:read', 'The current state of the migration.'),
        resolve: (row) => row.migration,
      }),
      success: t.int({
        description: 'The number of rows that created a user.',
        resolve: (row) => row.migration.success,
      }),
      skipped: t.int({
        description: 'The number of rows that were skipped: without an identifier, or a duplicate of a user.',
        resolve: (row) => row.migration.skipped,
      }),
      failed: t.int({
        description: 'The number of rows that failed: the row is invalid, or an unexpected error occurred.',
        resolve: (row) => row.migration.failed,
      }),
    }),
  );
  builder.subscriptionField('migrationProgress', (t) =>
    t.field({
      type: progress,
      ...needs(
        'users:read',
        'The progress of a migration: immediately, then after each step until the migration ends.',
      ),
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      subscribe: async (_root, { id }, { services, principal }) =>
        orNotFound(await services.migrationProgress.follow(principal.nodeId, id)),
      resolve: (row) => row,
    }),
  );
}

/** Adds the type of user migrations, with its queries, mutations and progress subscription. */
export function addMigrations(builder: Builder): void {
  const migrationStatus = enumOf(builder, 'MigrationStatus', 'The status of a migration of users.', {
    running: 'Rows are still being applied.',
    done: 'Every row has been applied.',
    cancelled: 'It was cancelled before its last row; the users that it created are kept.',
    failed: 'It could not continue; the users that it created are kept.',
  });
  const rows = implement(
    builder.objectRef<MigrationRowRow>('MigrationRow'),
    'A row of a migration: its identifier and its outcome.',
    {
      index: ['Int', 'The number of the row, from 1; the header of a CSV file is not counted.'],
      email: ['String?', 'The email as sent; null if there was none.'],
      external_id: ['String?', 'The external id as sent; null if there was none.'],
      user_id: ['ID?', 'The user that it created; null if it created none, as in a dry run.'],
      status: ['String', '`created`, `skipped` or `failed`.'],
      reason: [
        'String?',
        'The reason why the row created no user: `missing_email_and_external_id`, `duplicate_email`, `duplicate_external_id` or `duplicate_wallet`. For a failed row, a description of the error, which begins with `line N` if the row came from a file. Null if it created a user.',
      ],
    },
    (t) => ({
      warning: t.string({
        nullable: true,
        description:
          'What is suspicious about a row whatever its status, such as an external id that a spreadsheet has shortened to 1.23457E+11.',
        resolve: warningOf,
      }),
    }),
  );
  const rowPages = connectionOf(builder, rows, 'A page of rows.', 'A row and its cursor.');
  implement(
    builder.objectRef<MigrationTableRow>('Migration'),
    'A migration of users, from a request or from a file.',
    {
      id: ['ID', 'A UUID.'],
      status: [migrationStatus, 'Its status.'],
      total: ['Int', 'The number of rows.'],
      success: ['Int', 'The number of rows that created a user.'],
      skipped: ['Int', 'The number of rows that were skipped: without an identifier, or a duplicate of a user.'],
      failed: ['Int', 'The number of rows that failed: the row is invalid, or an unexpected error occurred.'],
      dry_run: [
        'Boolean',
        'Whether it is a dry run: counts and rows are those that a run would have had, and no user is created. Of more than 500 rows from a file, each is compared only with stored users and the rows of its batch.',
      ],
      file_name: ['String?', 'What its file is called, as who started it says; otherwise null.'],
      created_by: ['String', 'The `sub` of the token that started it.'],
      created_at: ['DateTime', 'When it began.'],
      finished_at: ['DateTime?', 'When it ended; null while it runs.'],
    },
    (t) => ({
      rows: t.field({
        type: rowPages,
        ...needs('users:read', 'The rows in order, each with its outcome.'),
        args: t.arg.connectionArgs(),
        resolve: ownedConnectionResolver('migration-rows', ({ migrationPages }) => migrationPages.rows),
      }),
      rejectedRows: t.field({
        type: rowPages,
        ...needs('users:read', 'The skipped and failed rows in order.'),
        args: t.arg.connectionArgs(),
        resolve: ownedConnectionResolver('rejected-rows', ({ migrationPages }) => migrationPages.rejectedRows),
      }),
    }),
  );
  addMigrationMutations(builder);
  addMigrationProgress(builder);
  const connection = connectionOf(builder, 'Migration', 'A page of migrations.', 'A migration and its cursor.');
  builder.queryFields((t) => ({
    migrations: t.field({
      type: connection,
      ...needs('users:read', "The tenant's migrations of users, newest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('migrations', ({ migrationPages }) => migrationPages),
    }),
    migration: t.field({
      type: 'Migration',
      nullable: true,
      ...needs('users:read', 'One migration; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      resolve: rowResolver(({ migrationPages }, nodeId, id) => migrationPages.find(nodeId, id)),
    }),
  }));
}

/** Adds the mutations that migrate one user, up to 500 users, or those of a file, and cancel that. */
function addMigrationMutations(builder: Builder): void {
  const input = inputOf(
    builder,
    'MigrateUserInput',
    'A user who already has a wallet. `email` or `externalId` is required.',
    {
      walletAddress: ['String!', 'Up to 128 characters; trimmed and lower-cased.'],
      email: [
        'String',
        'Trimmed and normalised to NFC; unique within the tenant, where letter case and invisible characters do not count. A blank value counts as absent.',
      ],
      externalId: [
        'String',
        'Your own identifier of the user, unique within the tenant, compared exactly; blank counts as absent.',
      ],
      name: ['String', 'The given name, normalised to NFC.'],
      surname: ['String', 'The family name, normalised to NFC.'],
      kycSent: [
        'Boolean',
        'Whether the KYC token was already sent. If true, the user is marked as verified. False by default.',
      ],
    },
  );
  builder.mutationFields((t) => ({
    migrateUser: t.field({
      type: 'User',
      ...EXCLUSIVE,
      ...needs('users:migrate', 'Migrates a user who already has a wallet.', 'Takes an `Idempotency-Key`.'),
      errors: errorsOf(
        'The user; or ValidationError: a member is invalid, or both identifiers are missing; DuplicateError: a user of the tenant already has the email, the external id or the wallet; ForbiddenError: the caller lacks users:migrate; NotFoundError: reserved for later versions.',
        DuplicateError,
      ),
      args: { input: t.arg({ ...parsedArgument(input, migrateUserInput), description: 'The user.' }) },
      resolve: async (_root, { input: user }, context) => {
        const { userMigrations } = context.services;
        const caller = callerOf(context);
        const migrate = userMigrations.exclusively(caller.nodeId, () => userMigrations.migrateOne(caller, user));
        const migrated = await orMember(migrate);
        if ('skipped' in migrated) throw SKIPPED[migrated.skipped]();
        return migrated.user;
      },
    }),
    migrateUsers: t.field({
      type: 'Migration',
      ...EXCLUSIVE,
      ...needs(
        'users:migrate',
        'Migrates 1 to 500 users. The rows of the migration contain the outcome of each.',
        'Takes an `Idempotency-Key`.',
      ),
      errors: errorsOf(
        'The migration; or ValidationError: no rows, more than 500 rows, a row without a wallet, or a dry run with an `Idempotency-Key`; ForbiddenError: the caller lacks users:migrate; NotFoundError: reserved for later versions.',
      ),
      args: {
        users: t.arg({ ...parsedArgument([input], migrateUsersInput.out.shape.users), description: '1 to 500 users.' }),
        dryRun: t.arg.boolean({
          defaultValue: false,
          description: `${DRY_RUN} It does not take an \`Idempotency-Key\`.`,
        }),
      },
      resolve: (_root, { users, dryRun }, context) => {
        const caller = callerOf(context);
        if (dryRun && caller.hasIdempotencyKey) {
          throw new ValidationError([
            { path: ['dryRun'], message: 'a dry run takes no Idempotency-Key: omit the header' },
          ]);
        }
        const { userMigrations } = context.services;
        const migrate = () => userMigrations.migrateMany(caller, users, dryRun ?? false);
        return orMember(userMigrations.exclusively(caller.nodeId, migrate));
      },
    }),
    startUserMigration: t.field({
      type: 'Migration',
      ...needs(
        'users:migrate',
        'Stores a CSV file of users, with any number of rows, and migrates them in the background. Subscribe to migrationProgress to follow it.',
      ),
      errors: errorsOf(
        'The migration, which has started; or ValidationError: the file is empty or its header is invalid; PreconditionError: the files of the tenant that are being uploaded or waiting already take 4 GiB; ForbiddenError: the caller lacks users:migrate; NotFoundError: reserved for later versions.',
        PreconditionError,
      ),
      args: {
        file: t.arg({
          type: 'File',
          required: true,
          description: `CSV in UTF-8 with a header: ${CSV_COLUMNS.join(', ')}, or in camelCase. Up to 1 GiB.`,
        }),
        dryRun: t.arg.boolean({
          defaultValue: false,
          description: `${DRY_RUN} Of more than 500 rows, each is compared only with the rows of its batch.`,
        }),
        name: t.arg.string({
          description: 'What the file is called, for people who look at the migration later.',
          validate: { schema: boundedTextInput(MAX_LENGTHS.migrations.file_name) },
        }),
      },
      resolve: (_root, { file, dryRun, name }, context) => {
        const { migrationFiles } = context.services;
        return orMember(migrationFiles.start(callerOf(context), file.readOnce(), { isDryRun: dryRun ?? false, name }));
      },
    }),
    cancelUserMigration: t.field({
      type: 'Migration',
      ...needs('users:migrate', 'Cancels a migration that has not ended; the users created so far are kept.'),
      errors: errorsOf(
        'The migration; or NotFoundError: there is no such migration; PreconditionError: it is already DONE or FAILED; ForbiddenError: the caller lacks users:migrate; ValidationError: reserved for later versions.',
        PreconditionError,
      ),
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      resolve: (_root, { id }, { services, principal }) =>
        orMember(services.migrationFiles.cancel(principal.nodeId, id)),
    }),
  }));
}

/** What makes the union member for each reason why a user is skipped. */
const SKIPPED: Readonly<Record<SkipReason, () => Error>> = {
  missing_email_and_external_id: () =>
    new ValidationError(
      ['email', 'externalId'].map((name) => ({ path: [name], message: 'email or externalId is required' })),
    ),
  duplicate_email: () => new DuplicateError('duplicate_email', 'a user with this email already exists'),
  duplicate_external_id: () =>
    new DuplicateError('duplicate_external_id', 'a user with this external id already exists'),
  duplicate_wallet: () => new DuplicateError('duplicate_wallet', 'a user with this wallet address already exists'),
};
