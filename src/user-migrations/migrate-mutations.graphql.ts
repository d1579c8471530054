import type { Builder } from '../graphql/builder.ts';
import { parsedInput } from '../graphql/camel-input.ts';
import { askerOf, type GraphqlContext } from '../graphql/context.ts';
import { DuplicateError, ForbiddenError, NotFoundError, ValidationError } from '../graphql/errors.ts';
import type { Refs } from '../graphql/refs.ts';
import { orMember } from '../graphql/refusals.ts';
import { migrateUserInput, migrateUsersInput } from './migration.input.ts';
import type { SkipReason } from './migration-outcome.rules.ts';
import type { MigrationCaller } from './user-migrations.service.ts';

const authScopes = { permission: 'users:migrate' } as const;

/** Adds the mutations that migrate one user, and up to 500 of them. */
export function addMigrateMutations(builder: Builder, refs: Refs): void {
  const input = migrateUserInputType(builder);
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
        const { userMigrations, userPages } = context.services;
        const { nodeId } = context.principal;
        const migrate = userMigrations.inTurn(nodeId, () => userMigrations.migrateOne(callerOf(context), user));
        const [row] = (await orMember(migrate)).rows;
        if (row?.outcome.status === 'skipped') throw memberOf(row.outcome.reason);
        const created = row?.user && (await userPages.find(nodeId, row.user.id));
        if (!created) throw new Error('one user is created or skipped');
        return created;
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
      resolve: async (_root, args, context) => {
        const { users } = parsedInput(migrateUsersInput, { users: args.users });
        const { userMigrations, migrationPages } = context.services;
        const { nodeId } = context.principal;
        const migrate = userMigrations.inTurn(nodeId, () => userMigrations.migrateMany(callerOf(context), users));
        const migration = await migrationPages.find(nodeId, (await orMember(migrate)).id);
        if (!migration) throw new Error('a migration is recorded');
        return migration;
      },
    }),
  }));
}

function migrateUserInputType(builder: Builder) {
  return builder.inputType('MigrateUserInput', {
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
}

/** Who asks for a migration. */
export function callerOf(context: GraphqlContext): MigrationCaller {
  const { principal, correlationId, traceparent } = askerOf(context);
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
