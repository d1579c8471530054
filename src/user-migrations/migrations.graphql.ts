import type { Builder } from '../graphql/builder.ts';
import { connectionOf, pageRequest } from '../graphql/pages.ts';
import type { Refs } from '../graphql/refs.ts';
import { isUuid } from '../lib/input.ts';
import { isoFromPg, isoFromPgOrNull } from '../lib/pg-time.ts';
import { addFileMutations } from './file-mutations.graphql.ts';
import { addMigrateMutations } from './migrate-mutations.graphql.ts';
import { addMigrationRows } from './migration-rows.graphql.ts';
import { addMigrationProgress } from './progress.graphql.ts';

const CONNECTION = 'migrations';

/** Adds the type of migrations, the queries for them, the mutations that migrate users, and how far they are. */
export function addMigrations(builder: Builder, refs: Refs): void {
  implementMigration(refs, migrationStatus(builder));
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
      resolve: async (_root, args, context) => {
        const { services, principal } = context;
        const request = pageRequest(args, context, CONNECTION);
        return connectionOf({
          page: await services.migrationPages.page(principal.nodeId, request),
          request,
          connection: CONNECTION,
          context,
          keyOf: (row) => ({ at: row.created_at, id: row.id }),
          nodeOf: (row) => row,
          totalCount: () => services.migrationPages.count(principal.nodeId),
        });
      },
    }),
    migration: t.field({
      type: refs.migration,
      nullable: true,
      description: 'One migration; null for an id that is unknown or of another node. Needs users:read.',
      authScopes: { permission: 'users:read' },
      args: { id: t.arg.id({ required: true, description: "The migration's UUID." }) },
      resolve: async (_root, { id }, { services, principal }) => {
        if (!isUuid(id)) return null;
        return (await services.migrationPages.find(principal.nodeId, id.toLowerCase())) ?? null;
      },
    }),
  }));
}

function migrationStatus(builder: Builder) {
  return builder.enumType('MigrationStatus', {
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
}

function implementMigration({ migration }: Refs, status: ReturnType<typeof migrationStatus>): void {
  migration.implement({
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
      createdAt: t.field({
        type: 'DateTime',
        description: 'When it began.',
        resolve: (row) => isoFromPg(row.created_at),
      }),
      finishedAt: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When it ended; null while it runs.',
        resolve: (row) => isoFromPgOrNull(row.finished_at),
      }),
    }),
  });
}
