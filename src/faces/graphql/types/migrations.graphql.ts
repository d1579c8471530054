import type { MigrationProgressRow } from '../../../domain/user-migrations/migration-files.service.ts';
import type { MigrationRowRow } from '../../../domain/user-migrations/migration-pages.service.ts';
import { notFoundRefusal } from '../../../platform/errors.ts';
import { MIGRATIONS, ROWS_OF_MIGRATIONS } from '../../shared/lists.ts';
import type { Builder } from '../kit/builder.ts';
import { type GraphqlContext, tokenOf } from '../kit/graphql-context.ts';
import { connectionResolver, ownedConnectionResolver, rowResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';
import { addFileMutations, addMigrateMutations } from './migration-mutations.graphql.ts';

/** Adds the type of rows and the rows of a migration. */
function addMigrationRows(builder: Builder, refs: TypeRefs): void {
  const connection = builder.connectionObject(
    { type: rowType(builder), name: 'MigrationRowConnection', description: 'A page of rows.' },
    { name: 'MigrationRowEdge', description: 'A row and its place in the list.' },
  );
  builder.objectField(refs.migration, 'rows', (t) =>
    t.field({
      type: connection,
      description: 'Each row and what became of it, in order. Needs users:read.',
      authScopes: { permission: 'users:read' },
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('migration-rows', ROWS_OF_MIGRATIONS),
    }),
  );
}

function rowType(builder: Builder) {
  return builder.objectRef<MigrationRowRow>('MigrationRow').implement({
    description: 'A row of a migration: what identified it, and what became of it.',
    fields: (t) => ({
      index: t.exposeInt('index', {
        description: 'Its place among the rows; the first is 1. Of a CSV file: the data row, the header not counted.',
      }),
      email: t.exposeString('email', { nullable: true, description: 'As it was sent; null where it had none.' }),
      externalId: t.exposeString('external_id', {
        nullable: true,
        description: 'As it was sent; null where it had none.',
      }),
      userId: t.exposeID('user_id', { nullable: true, description: 'The user that it became; null for none.' }),
      status: t.exposeString('status', { description: '`created`, `skipped` or `failed`.' }),
      reason: t.exposeString('reason', {
        nullable: true,
        description:
          'Why it became no user: `missing_email_and_external_id`, `duplicate_email`, `duplicate_external_id`, `duplicate_wallet`, or of a failed row what was wrong with it, in a file after `line N`. Null for one that did.',
      }),
    }),
  });
}

/** Adds the subscription that tells how far a migration is. */
function addMigrationProgress(builder: Builder, refs: TypeRefs): void {
  const progress = builder.objectRef<MigrationProgressRow>('MigrationProgress').implement({
    description: 'How far a migration of users is.',
    fields: (t) => ({
      migration: t.field({
        type: refs.migration,
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

async function follow(id: string, context: GraphqlContext) {
  const { services, principal } = context;
  const stream = await services.migrationProgress.follow(principal.nodeId, id, tokenOf(context));
  if (!stream) throw notFoundRefusal();
  return stream;
}

/** Adds the type of migrations, the queries for them, the mutations that migrate users, and how far they are. */
export function addMigrations(builder: Builder, refs: TypeRefs): void {
  const status = builder.enumType('MigrationStatus', {
    description: 'How far a migration of users is.',
    values: {
      RUNNING: { value: 'running' as const, description: 'Rows are still to come.' },
      DONE: { value: 'done' as const, description: 'Every row has been applied.' },
      CANCELLED: {
        value: 'cancelled' as const,
        description: 'It was ended before its last row; what was applied stays.',
      },
      FAILED: { value: 'failed' as const, description: 'It could not go on; what was applied stays.' },
    },
  });
  refs.migration.implement({
    description: 'A request to migrate users, or a file of them.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID.' }),
      status: t.field({ type: status, description: 'How far it is.', resolve: (row) => row.status }),
      total: t.exposeInt('total', { description: 'How many rows it has.' }),
      success: t.exposeInt('success', { description: 'How many became users.' }),
      skipped: t.exposeInt('skipped', {
        description: 'How many became none for want of an identifier, or as duplicates.',
      }),
      failed: t.exposeInt('failed', { description: 'How many became none because the row is not valid.' }),
      createdBy: t.exposeString('created_by', { description: 'The `sub` of the token that asked for it.' }),
      createdAt: t.expose('created_at', { type: 'DateTime', description: 'When it began.' }),
      finishedAt: t.expose('finished_at', {
        type: 'DateTime',
        nullable: true,
        description: 'When it ended; null while it runs.',
      }),
    }),
  });
  addMigrationRows(builder, refs);
  addMigrateMutations(builder, refs);
  addFileMutations(builder, refs);
  addMigrationProgress(builder, refs);
  const connection = builder.connectionObject(
    { type: refs.migration, name: 'MigrationConnection', description: 'A page of migrations.' },
    { name: 'MigrationEdge', description: 'A migration and its place in the list.' },
  );
  builder.queryFields((t) => ({
    migrations: t.field({
      type: connection,
      description: "The node's migrations of users, newest first. Needs users:read.",
      authScopes: { permission: 'users:read' },
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('migrations', MIGRATIONS, () => ({})),
    }),
    migration: t.field({
      type: refs.migration,
      nullable: true,
      description: 'One migration; null for an id that is unknown or of another node. Needs users:read.',
      authScopes: { permission: 'users:read' },
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      resolve: rowResolver(({ migrationPages }, nodeId, id) => migrationPages.find(nodeId, id)),
    }),
  }));
}
