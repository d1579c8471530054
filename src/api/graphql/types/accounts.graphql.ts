import { searchInput, textInput } from '../../../lib/input.ts';
import { type Builder, needs } from '../kit/builder.ts';
import { withoutNulls } from '../kit/camel-input.ts';
import { connectionResolver, rowResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/** Adds the type of accounts and the queries for them. */
export function addAccounts(builder: Builder, refs: TypeRefs): void {
  refs.account.implement({
    description: 'An account of a node.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID, the same as in REST.' }),
      name: t.exposeString('name', { description: 'The display name.' }),
      nodeId: t.exposeID('node_id', { description: 'The node that it belongs to.' }),
      type: t.exposeString('type', {
        description: 'Such as `organisation` or `customer-segregated`; others may come.',
      }),
      status: t.exposeInt('status', { description: '1 active, 2 suspended, 3 closed; others may come.' }),
      createdAt: t.expose('created_at', { type: 'DateTime', description: 'When it was created.' }),
      updatedAt: t.expose('updated_at', { type: 'DateTime', description: 'When it was last changed.' }),
      deletedAt: t.expose('deleted_at', {
        type: 'DateTime',
        nullable: true,
        description: 'When it was deleted; null for one that is not.',
      }),
    }),
  });
  const filter = builder.inputType('AccountFilter', {
    description: 'Filters accounts; every given member must match.',
    fields: (t) => ({
      type: t.string({ description: 'The exact type, such as `organisation`.', validate: { schema: textInput() } }),
      status: t.int({ description: 'The exact status: 1 active, 2 suspended, 3 closed.' }),
      search: t.string({ description: 'Part of the name, ignoring case.', validate: { schema: searchInput() } }),
      includeDeleted: t.boolean({ description: 'Whether to include deleted accounts; false by default.' }),
    }),
  });
  const connection = builder.connectionObject(
    { type: refs.account, name: 'AccountConnection', description: 'A page of accounts.' },
    { name: 'AccountEdge', description: 'An account and its cursor.' },
  );
  builder.queryFields((t) => ({
    accounts: t.field({
      type: connection,
      ...needs('accounts:read', "The node's accounts, oldest first."),
      args: {
        filter: t.arg({ type: filter, description: 'Filters the accounts; by default all that are not deleted.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver(
        'accounts',
        ({ accountPages }) => accountPages,
        ({ filter }) => withoutNulls(filter),
      ),
    }),
    account: t.field({
      type: refs.account,
      nullable: true,
      ...needs('accounts:read', 'One account, deleted or not; null for an id that is unknown or of another node.'),
      args: { id: t.arg.id({ required: true, description: "The account's UUID." }) },
      resolve: rowResolver(({ accountPages }, nodeId, id) => accountPages.find(nodeId, id)),
    }),
  }));
}
