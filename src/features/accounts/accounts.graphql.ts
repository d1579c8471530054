import { type Builder, connectionOf, declaredColumns, implement, needs } from '../../api/graphql/kit/builder.ts';
import { connectionResolver, rowResolver } from '../../api/graphql/kit/resolvers.ts';
import { searchInput, textInput } from '../../lib/input.ts';
import { type AccountRow, account } from './accounts.service.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    Account: AccountRow;
  }
}

/** Adds the type of accounts and the queries for them. */
export function addAccounts(builder: Builder): void {
  implement(builder.objectRef<AccountRow>('Account'), 'An account of a tenant.', declaredColumns(account));
  const filter = builder.inputType('AccountFilter', {
    description: 'Filters accounts; all given members must match.',
    fields: (t) => ({
      type: t.string({ description: 'The exact type, such as `organisation`.', validate: { schema: textInput() } }),
      status: t.int({ description: 'The exact status: 1 active, 2 suspended, 3 closed.' }),
      search: t.string({ description: 'Part of the name, ignoring case.', validate: { schema: searchInput() } }),
      includeDeleted: t.boolean({ description: 'Whether to include deleted accounts; false by default.' }),
    }),
  });
  const connection = connectionOf(builder, 'Account', 'A page of accounts.', 'An account and its cursor.');
  builder.queryFields((t) => ({
    accounts: t.field({
      type: connection,
      ...needs('accounts:read', "The tenant's accounts, oldest first."),
      args: {
        filter: t.arg({ type: filter, description: 'Filters the accounts; by default deleted accounts are left out.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver('accounts', ({ accountPages }) => accountPages),
    }),
    account: t.field({
      type: 'Account',
      nullable: true,
      ...needs('accounts:read', 'One account, deleted or not; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id({ required: true, description: "The account's UUID." }) },
      resolve: rowResolver(({ accountPages }, nodeId, id) => accountPages.find(nodeId, id)),
    }),
  }));
}
