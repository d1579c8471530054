import type { Builder } from '../graphql/builder.ts';
import { connectionOf, pageRequest } from '../graphql/pages.ts';
import type { Refs } from '../graphql/refs.ts';
import { isUuid, searchInput, textInput } from '../lib/input.ts';
import { isoFromPg, isoFromPgOrNull } from '../lib/pg-time.ts';
import type { AccountFilter } from './account-pages.service.ts';

const CONNECTION = 'accounts';

/** Adds the type of accounts and the queries for them. */
export function addAccounts(builder: Builder, refs: Refs): void {
  implementAccount(refs);
  const filter = accountFilter(builder);
  const connection = builder.connectionObject(
    { type: refs.account, name: 'AccountConnection', description: 'A page of accounts.' },
    { name: 'AccountEdge', description: 'An account and its place in the list.' },
  );
  builder.queryFields((t) => ({
    accounts: t.field({
      type: connection,
      description: "The node's accounts, oldest first. Needs accounts:read.",
      authScopes: { permission: 'accounts:read' },
      args: {
        filter: t.arg({ type: filter, description: 'Which accounts; all that are not deleted by default.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: async (_root, args, context) => {
        const { services, principal } = context;
        const request = pageRequest(args, context, CONNECTION);
        const wanted = withoutNulls(args.filter);
        return connectionOf({
          page: await services.accountPages.page(principal.nodeId, wanted, request),
          request,
          connection: CONNECTION,
          context,
          keyOf: (row) => ({ at: row.created_at, id: row.id }),
          nodeOf: (row) => row,
          totalCount: () => services.accountPages.count(principal.nodeId, wanted),
        });
      },
    }),
    account: t.field({
      type: refs.account,
      nullable: true,
      description:
        'One account, deleted or not; null for an id that is unknown or of another node. Needs accounts:read.',
      authScopes: { permission: 'accounts:read' },
      args: { id: t.arg.id({ required: true, description: "The account's UUID." }) },
      resolve: async (_root, { id }, { services, principal }) => {
        if (!isUuid(id)) return null;
        return (await services.accountPages.byIds(principal.nodeId, [id.toLowerCase()]))[0] ?? null;
      },
    }),
  }));
}

function implementAccount({ account }: Refs): void {
  account.implement({
    description: 'An account of a node.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID, the same as in REST.' }),
      name: t.exposeString('name', { description: 'As people call it.' }),
      nodeId: t.exposeID('node_id', { description: 'The node that it belongs to.' }),
      type: t.exposeString('type', {
        description: 'Such as `organisation` or `customer-segregated`; others may come.',
      }),
      status: t.exposeInt('status', { description: '1 active, 2 suspended, 3 closed; others may come.' }),
      createdAt: t.field({
        type: 'DateTime',
        description: 'When it was created.',
        resolve: (row) => isoFromPg(row.created_at),
      }),
      updatedAt: t.field({
        type: 'DateTime',
        description: 'When it was last changed.',
        resolve: (row) => isoFromPg(row.updated_at),
      }),
      deletedAt: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When it was deleted; null for one that is not.',
        resolve: (row) => isoFromPgOrNull(row.deleted_at),
      }),
    }),
  });
}

function accountFilter(builder: Builder) {
  return builder.inputType('AccountFilter', {
    description: 'Which accounts a list has; all that is given must hold.',
    fields: (t) => ({
      type: t.string({ description: 'Exactly this type, such as `organisation`.', validate: { schema: textInput() } }),
      status: t.int({ description: 'Exactly this status: 1 active, 2 suspended, 3 closed.' }),
      search: t.string({ description: 'A part of the name, in either case.', validate: { schema: searchInput() } }),
      includeDeleted: t.boolean({ description: 'Whether deleted accounts are in it; false by default.' }),
    }),
  });
}

interface GivenFilter {
  type?: string | null | undefined;
  status?: number | null | undefined;
  search?: string | null | undefined;
  includeDeleted?: boolean | null | undefined;
}

function withoutNulls(given: GivenFilter | null | undefined): AccountFilter {
  return {
    type: given?.type ?? undefined,
    status: given?.status ?? undefined,
    search: given?.search ?? undefined,
    includeDeleted: given?.includeDeleted ?? undefined,
  };
}
