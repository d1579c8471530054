import { migrateUserInput, migrateUsersInput } from '../../../domain/user-migrations/migration.input.ts';
import type { SkipReason } from '../../../domain/user-migrations/migration-outcome.rules.ts';
import type { MigrationCaller } from '../../../domain/user-migrations/user-migrations.service.ts';
import type { Builder } from '../kit/builder.ts';
import { parsedInput } from '../kit/camel-input.ts';
import { callerOf, type GraphqlContext } from '../kit/graphql-context.ts';
import {
  DuplicateError,
  ForbiddenError,
  NotFoundError,
  orMember,
  PreconditionError,
  ValidationError,
} from '../kit/graphql-errors.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

const authScopes = { permission: 'users:migrate' } as const;

/** Adds the mutations that migrate one user, and up to 500 of them. */
export function addMigrateMutations(builder: Builder, refs: TypeRefs): void {
  const input = builder.inputType('MigrateUserInput', {
    description: 'A user who has a wallet already. One of `email` and `externalId` is needed.',
    fields: (t) => ({
      walletAddress: t.string({ required: true, description: 'Up to 128 characters; trimmed and lower-cased.' }),
      email: t.string({ description: 'Unique in the node in any case of its letters; empty counts as absent.' }),
      externalId: t.string({ description: 'An identifier of your own, unique in the node; empty counts as absent.' }),
      name: t.string({ description: 'The given name.' }),
      surname: t.string({ description: 'The family name.' }),
      kycSent: t.boolean({
        description: 'Whether the KYC token was sent already: the user is verified then; false by default.',
      }),
    }),
  });
  builder.mutationFields((t) => ({
    migrateUser: t.field({
      type: refs.user,
      description: 'Migrates a user who has a wallet already. Needs users:migrate.',
      authScopes,
      errors: {
        types: [ValidationError, DuplicateError, NotFoundError, ForbiddenError],
        union: {
          name: 'MigrateUserResult',
          description:
            'The user; or ValidationError: a member is not valid, or both identifiers are missing; DuplicateError: a user of the node has the email, the external id or the wallet; ForbiddenError: without users:migrate; NotFoundError: not at present.',
        },
      },
      args: { input: t.arg({ type: input, required: true, description: 'The user.' }) },
      resolve: async (_root, args, context) => {
        const user = parsedInput(migrateUserInput, args.input);
        const { userMigrations } = context.services;
        const caller = migrationCallerOf(context);
        const migrate = userMigrations.exclusively(caller.nodeId, () => userMigrations.migrateOne(caller, user));
        const migrated = await orMember(migrate);
        if ('skipped' in migrated) throw memberOf(migrated.skipped);
        return migrated.user;
      },
    }),
    migrateUsers: t.field({
      type: refs.migration,
      description: 'Migrates 1 to 500 users; what becomes of each is told by the rows. Needs users:migrate.',
      authScopes,
      errors: {
        types: [ValidationError, NotFoundError, ForbiddenError],
        union: {
          name: 'MigrateUsersResult',
          description:
            'The migration; or ValidationError: none or over 500 rows, or a row without a wallet; ForbiddenError: without users:migrate; NotFoundError: not at present.',
        },
      },
      args: { users: t.arg({ type: [input], required: true, description: '1 to 500 users.' }) },
      resolve: (_root, args, context) => {
        const { users } = parsedInput(migrateUsersInput, { users: args.users });
        const { userMigrations } = context.services;
        const caller = migrationCallerOf(context);
        return orMember(userMigrations.exclusively(caller.nodeId, () => userMigrations.migrateMany(caller, users)));
      },
    }),
  }));
}

/** Who asks for a migration. */
function migrationCallerOf(context: GraphqlContext): MigrationCaller {
  const { principal, correlationId, traceparent } = callerOf(context);
  return { nodeId: principal.nodeId, createdBy: principal.subject, correlationId, traceparent };
}

/** Why a user is not migrated, as a member of the union. */
function memberOf(reason: SkipReason): Error {
  switch (reason) {
    case 'missing_email_and_external_id':
      return new ValidationError(
        ['email', 'externalId'].map((name) => ({ path: [name], message: 'one of both is needed' })),
      );
    case 'duplicate_email':
      return new DuplicateError(reason, 'a user with that email exists');
    case 'duplicate_external_id':
      return new DuplicateError(reason, 'a user with that external id exists');
    case 'duplicate_wallet':
      return new DuplicateError(reason, 'a user with that wallet address exists');
    default:
      return reason satisfies never;
  }
}

/** Adds the mutations that begin and end the migration of a file. */
export function addFileMutations(builder: Builder, refs: TypeRefs): void {
  builder.mutationFields((t) => ({
    startUserMigration: t.field({
      type: refs.migration,
      description:
        'Stores a CSV file of users, of any number of rows, and migrates them from then on; migrationProgress tells how far it is. Needs users:migrate.',
      authScopes,
      errors: {
        types: [ValidationError, NotFoundError, ForbiddenError],
        union: {
          name: 'StartUserMigrationResult',
          description:
            'The migration, which runs from then on; or ValidationError: the file is empty or its header does not hold; ForbiddenError: without users:migrate; NotFoundError: not at present.',
        },
      },
      args: {
        file: t.arg({
          type: 'File',
          required: true,
          description:
            'CSV in UTF-8 with a header: wallet_address, email, external_id, name, surname, kyc_sent, or in camelCase. Up to 1 GiB.',
        }),
      },
      resolve: (_root, { file }, context) =>
        orMember(context.services.migrationFiles.start(migrationCallerOf(context), file.take())),
    }),
    cancelUserMigration: t.field({
      type: refs.migration,
      description: 'Ends a migration before its last row; what was applied stays. Needs users:migrate.',
      authScopes,
      errors: {
        types: [ValidationError, NotFoundError, PreconditionError, ForbiddenError],
        union: {
          name: 'CancelUserMigrationResult',
          description:
            'The migration; or NotFoundError: the migration; PreconditionError: it is done or has failed already; ForbiddenError: without users:migrate; ValidationError: not at present.',
        },
      },
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      resolve: (_root, { id }, { services, principal }) =>
        orMember(services.migrationFiles.cancel(principal.nodeId, id)),
    }),
  }));
}
