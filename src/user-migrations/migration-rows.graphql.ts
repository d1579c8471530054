import type { Builder } from '../graphql/builder.ts';
import { nestedPages } from '../graphql/nested-pages.ts';
import type { Refs } from '../graphql/refs.ts';
import type { MigrationRowRow } from './migration-pages.service.ts';

const CONNECTION = 'migration-rows';

/** Adds the type of rows and the rows of a migration. */
export function addMigrationRows(builder: Builder, refs: Refs): void {
  const connection = builder.connectionObject(
    { type: rowType(builder), name: 'MigrationRowConnection', description: 'A page of rows.' },
    { name: 'MigrationRowEdge', description: 'A row and its place in the list.' },
  );
  const ofMigrations = nestedPages({
    connection: CONNECTION,
    read: ({ services, principal }, ids, request) => services.migrationPages.rowsOf(principal.nodeId, ids, request),
    count: ({ services, principal }, ids) => services.migrationPages.countRowsOf(principal.nodeId, ids),
    keyOf: (row) => ({ at: String(row.index), id: '' }),
  });
  builder.objectField(refs.migration, 'rows', (t) =>
    t.field({
      type: connection,
      description: 'Each row and what became of it, in order. Needs users:read.',
      authScopes: { permission: 'users:read' },
      args: t.arg.connectionArgs(),
      resolve: ({ id }, args, context, info) => ofMigrations.resolve(id, args, context, info),
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
