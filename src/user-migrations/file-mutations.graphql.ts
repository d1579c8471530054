import type { Builder } from '../graphql/builder.ts';
import { ForbiddenError, NotFoundError, PreconditionError, ValidationError } from '../graphql/errors.ts';
import type { Refs } from '../graphql/refs.ts';
import { orMember } from '../graphql/refusals.ts';
import { isUuid } from '../lib/input.ts';
import { callerOf } from './migrate-mutations.graphql.ts';

const authScopes = { permission: 'users:migrate' } as const;

/** Adds the mutations that begin and end the migration of a file. */
export function addFileMutations(builder: Builder, refs: Refs): void {
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
      resolve: async (_root, { file }, context) => {
        const { migrationFiles, migrationPages } = context.services;
        const { id } = await orMember(migrationFiles.start(callerOf(context), file.take()));
        const migration = await migrationPages.find(context.principal.nodeId, id);
        if (!migration) throw new Error('a migration is recorded');
        return migration;
      },
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
      resolve: async (_root, { id }, { services, principal }) => {
        if (!isUuid(id)) throw new NotFoundError();
        return orMember(services.migrationFiles.cancel(principal.nodeId, id.toLowerCase()));
      },
    }),
  }));
}
