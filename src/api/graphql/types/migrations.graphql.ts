import { migrateUserInput, migrateUsersInput } from '../../../domain/user-migrations/migration.input.ts';
import type { MigrationProgressRow } from '../../../domain/user-migrations/migration-files.service.ts';
import type { SkipReason } from '../../../domain/user-migrations/migration-outcome.rules.ts';
import type { MigrationRowRow } from '../../../domain/user-migrations/migration-pages.service.ts';
import { notFound } from '../../../platform/errors.ts';
import { type Builder, connectionOf, implement, inputOf, needs } from '../kit/builder.ts';
import { parsedArgument } from '../kit/camel-input.ts';
import { callerOf, type GraphqlContext } from '../kit/graphql-context.ts';
import { DuplicateError, errorsOf, orMember, PreconditionError, ValidationError } from '../kit/graphql-errors.ts';
import { connectionResolver, ownedConnectionResolver, rowResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/** Adds the type of the rows of a user migration, and the field of user migrations that lists them. */
function addMigrationRows(builder: Builder, refs: TypeRefs): void {
  const rows = implement(
    builder.objectRef<MigrationRowRow>('MigrationRow'),
    'A row of a migration: its identifier and its outcome.',
    {
      index: ['Int', 'Its number among the rows, from 1; the header of a CSV file is not counted.'],
      email: ['String?', 'The email as sent; null if there was none.'],
      external_id: ['String?', 'The external id as sent; null if there was none.'],
      user_id: ['ID?', 'The user that it created; null if it created none.'],
      status: ['String', '`created`, `skipped` or `failed`.'],
      reason: [
        'String?',
        'Why it became no user: `missing_email_and_external_id`, `duplicate_email`, `duplicate_external_id`, `duplicate_wallet`, or of a failed row what was wrong with it, in a file after `line N`. Null for one that did.',
      ],
    },
  );
  const connection = connectionOf(builder, rows, 'A page of rows.', 'A row and its cursor.');
  builder.objectField(refs.migration, 'rows', (t) =>
    t.field({
      type: connection,
      ...needs('users:read', 'Its rows in order, each with its outcome.'),
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('migration-rows', ({ migrationPages }) => migrationPages.rows),
    }),
  );
}

/** Adds the subscription to the progress of a user migration. */
function addMigrationProgress(builder: Builder, refs: TypeRefs): void {
  const progress = implement(
    builder.objectRef<MigrationProgressRow>('MigrationProgress'),
    'The progress of a migration of users.',
    {
      processed: ['Int', 'How many rows have an outcome.'],
      total: ['Int?', 'How many rows it has; null while that is unknown.'],
      done: ['Boolean', 'Whether this is the last value: the migration is DONE, CANCELLED or FAILED.'],
    },
  );
  builder.objectFields(progress, (t) => ({
    migration: t.field({
      type: refs.migration,
      ...needs('users:read', 'The migration as it is now.'),
      resolve: (row) => row.migration,
    }),
    success: t.int({ description: 'How many rows created a user.', resolve: (row) => row.migration.success }),
    skipped: t.int({
      description: 'How many rows had no identifier, or were duplicates.',
      resolve: (row) => row.migration.skipped,
    }),
    failed: t.int({
      description: 'How many rows were not valid.',
      resolve: (row) => row.migration.failed,
    }),
  }));
  builder.subscriptionField('migrationProgress', (t) =>
    t.field({
      type: progress,
      ...needs('users:read', 'The progress of a migration: at once, then after each step, until it is done.'),
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      subscribe: (_root, { id }, context) => follow(id, context),
      resolve: (row) => row,
    }),
  );
}

async function follow(id: string, context: GraphqlContext) {
  const { services, principal } = context;
  const stream = await services.migrationProgress.follow(principal.nodeId, id);
  if (!stream) throw notFound();
  return stream;
}

/** Adds the type of user migrations, with its queries, mutations and progress subscription. */
export function addMigrations(builder: Builder, refs: TypeRefs): void {
  implement(refs.migration, 'A request to migrate users, or a file of them.', {
    id: ['ID', 'A UUID.'],
    status: [refs.migrationStatus, 'Its status.'],
    total: ['Int', 'How many rows it has.'],
    success: ['Int', 'How many rows created a user.'],
    skipped: ['Int', 'How many rows had no identifier, or were duplicates.'],
    failed: ['Int', 'How many rows were not valid.'],
    created_by: ['String', 'The `sub` of the token that started it.'],
    created_at: ['DateTime', 'When it began.'],
    finished_at: ['DateTime?', 'When it ended; null while it runs.'],
  });
  addMigrationRows(builder, refs);
  addMigrateMutations(builder, refs);
  addFileMutations(builder, refs);
  addMigrationProgress(builder, refs);
  const connection = connectionOf(builder, refs.migration, 'A page of migrations.', 'A migration and its cursor.');
  builder.queryFields((t) => ({
    migrations: t.field({
      type: connection,
      ...needs('users:read', "The node's migrations of users, newest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('migrations', ({ migrationPages }) => migrationPages),
    }),
    migration: t.field({
      type: refs.migration,
      nullable: true,
      ...needs('users:read', 'One migration; null for an id that is unknown or of another node.'),
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      resolve: rowResolver(({ migrationPages }, nodeId, id) => migrationPages.find(nodeId, id)),
    }),
  }));
}

/** Adds the mutations that migrate one user, or up to 500 users. */
function addMigrateMutations(builder: Builder, refs: TypeRefs): void {
  const input = inputOf(
    builder,
    'MigrateUserInput',
    'A user who has a wallet already. One of `email` and `externalId` is needed.',
    {
      walletAddress: ['String!', 'Up to 128 characters; trimmed and lower-cased.'],
      email: [
        'String',
        'Unique in the node in any letter case, after it is trimmed and normalised to NFC; blank counts as absent.',
      ],
      externalId: [
        'String',
        'An identifier of your own, unique in the node, compared exactly; blank counts as absent.',
      ],
      name: ['String', 'The given name, normalised to NFC.'],
      surname: ['String', 'The family name, normalised to NFC.'],
      kycSent: ['Boolean', 'Whether the KYC token was sent already: the user is verified then; false by default.'],
    },
  );
  builder.mutationFields((t) => ({
    migrateUser: t.field({
      type: refs.user,
      ...needs('users:migrate', 'Migrates a user who has a wallet already.', 'Takes an `Idempotency-Key`.'),
      errors: errorsOf(
        'The user; or ValidationError: a member is not valid, or both identifiers are missing; DuplicateError: a user of the node has the email, the external id or the wallet; ForbiddenError: without users:migrate; NotFoundError: never returned today.',
        DuplicateError,
      ),
      args: { input: t.arg({ ...parsedArgument(input, migrateUserInput), description: 'The user.' }) },
      resolve: async (_root, { input: user }, context) => {
        const { userMigrations } = context.services;
        const caller = callerOf(context);
        const migrate = userMigrations.exclusively(caller.nodeId, () => userMigrations.migrateOne(caller, user));
        const migrated = await orMember(migrate);
        if ('skipped' in migrated) throw SKIPPED[migrated.skipped](migrated.skipped);
        return migrated.user;
      },
    }),
    migrateUsers: t.field({
      type: refs.migration,
      ...needs(
        'users:migrate',
        'Migrates 1 to 500 users; the rows of the migration have the outcome of each.',
        'Takes an `Idempotency-Key`.',
      ),
      errors: errorsOf(
        'The migration; or ValidationError: none or over 500 rows, or a row without a wallet; ForbiddenError: without users:migrate; NotFoundError: never returned today.',
      ),
      args: {
        users: t.arg({ ...parsedArgument([input], migrateUsersInput.out.shape.users), description: '1 to 500 users.' }),
      },
      resolve: (_root, { users }, context) => {
        const { userMigrations } = context.services;
        const caller = callerOf(context);
        return orMember(userMigrations.exclusively(caller.nodeId, () => userMigrations.migrateMany(caller, users)));
      },
    }),
  }));
}

/** What makes the union member for each reason why a user is skipped. */
const SKIPPED: Readonly<Record<SkipReason, (reason: SkipReason) => Error>> = {
  missing_email_and_external_id: () =>
    new ValidationError(['email', 'externalId'].map((name) => ({ path: [name], message: 'one of both is required' }))),
  duplicate_email: (reason) => new DuplicateError(reason, 'a user with that email exists'),
  duplicate_external_id: (reason) => new DuplicateError(reason, 'a user with that external id exists'),
  duplicate_wallet: (reason) => new DuplicateError(reason, 'a user with that wallet address exists'),
};

/** Adds the mutations that start and cancel the user migration of a file. */
function addFileMutations(builder: Builder, refs: TypeRefs): void {
  builder.mutationFields((t) => ({
    startUserMigration: t.field({
      type: refs.migration,
      ...needs(
        'users:migrate',
        'Stores a CSV file of users, with any number of rows, and migrates them in the background; migrationProgress has the progress.',
      ),
      errors: errorsOf(
        'The migration, which runs from then on; or ValidationError: the file is empty or its header does not hold; PreconditionError: files of the node that are being uploaded or wait to be migrated take 4 GiB; ForbiddenError: without users:migrate; NotFoundError: never returned today.',
        PreconditionError,
      ),
      args: {
        file: t.arg({
          type: 'File',
          required: true,
          description:
            'CSV in UTF-8 with a header: wallet_address, email, external_id, name, surname, kyc_sent, or in camelCase. Up to 1 GiB.',
        }),
      },
      resolve: (_root, { file }, context) =>
        orMember(context.services.migrationFiles.start(callerOf(context), file.take())),
    }),
    cancelUserMigration: t.field({
      type: refs.migration,
      ...needs('users:migrate', 'Stops a migration before its last row; the users created so far stay.'),
      errors: errorsOf(
        'The migration; or NotFoundError: the migration; PreconditionError: it is done or has failed already; ForbiddenError: without users:migrate; ValidationError: not returned.',
        PreconditionError,
      ),
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      resolve: (_root, { id }, { services, principal }) =>
        orMember(services.migrationFiles.cancel(principal.nodeId, id)),
    }),
  }));
}
