import type { Builder } from '../graphql/builder.ts';
import { askerOf, type GraphqlContext } from '../graphql/context.ts';
import { notFoundError } from '../graphql/errors.ts';
import { withToldErrors } from '../graphql/live-events.ts';
import type { Refs } from '../graphql/refs.ts';
import { isUuid } from '../lib/input.ts';
import type { MigrationProgressRow } from './migration-files.service.ts';

/** Adds the subscription that tells how far a migration is. */
export function addMigrationProgress(builder: Builder, refs: Refs): void {
  const progress = progressType(builder, refs);
  builder.subscriptionField('migrationProgress', (t) =>
    t.field({
      type: progress,
      description:
        'How far a migration is: at once, then whenever it has got further, until it is done. Needs users:read.',
      authScopes: { permission: 'users:read' },
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      subscribe: (_root, { id }, context) => follow(id, context),
      resolve: (row) => row,
    }),
  );
}

function progressType(builder: Builder, { migration }: Refs) {
  return builder.objectRef<MigrationProgressRow>('MigrationProgress').implement({
    description: 'How far a migration of users is.',
    fields: (t) => ({
      migration: t.field({
        type: migration,
        description: 'The migration as it is now. Needs users:read.',
        authScopes: { permission: 'users:read' },
        resolve: (row) => row.migration,
      }),
      processed: t.exposeInt('processed', { description: 'How many rows have an outcome.' }),
      total: t.exposeInt('total', { nullable: true, description: 'How many rows it has; null while that is unknown.' }),
      success: t.int({ description: 'How many became users.', resolve: (row) => row.migration.success }),
      skipped: t.int({
        description: 'How many became none for want of an identifier, or as duplicates.',
        resolve: (row) => row.migration.skipped,
      }),
      failed: t.int({
        description: 'How many became none because the row is not valid.',
        resolve: (row) => row.migration.failed,
      }),
      done: t.exposeBoolean('done', { description: 'Whether nothing more comes: it is DONE, CANCELLED or FAILED.' }),
    }),
  });
}

async function follow(id: string, context: GraphqlContext) {
  if (!isUuid(id)) throw notFoundError();
  const { services } = context;
  const { principal } = askerOf(context);
  const { nodeId, expiresAtMs } = principal;
  const watchToken = (onEnd: (error?: unknown) => void) => services.watchAccess(principal, onEnd);
  const stream = await services.migrationProgress.follow(nodeId, id.toLowerCase(), { expiresAtMs, watchToken });
  if (!stream) throw notFoundError();
  return withToldErrors(stream);
}
