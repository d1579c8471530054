import { z } from 'zod';
import { accountView } from '../../../domain/accounts/accounts.service.ts';
import { objectInput, searchInput, textInput, uuidInput } from '../../../lib/input.ts';
import { instant, listPage, pageArguments, pageOutput, uuid } from '../kit/list-tools.ts';
import { defineTool, found } from '../kit/tool.ts';

const account = z.strictObject({
  id: uuid(),
  name: z.string(),
  node_id: uuid(),
  type: z.string().meta({ description: 'Such as organisation or customer-segregated; others may come.' }),
  status: z.int().meta({ description: '1 active, 2 suspended, 3 closed; others may come.' }),
  created_at: instant(),
  updated_at: instant(),
  deleted_at: instant().nullable(),
});

export const accountTools = [
  defineTool({
    name: 'list_accounts',
    title: 'List accounts',
    description:
      "The node's accounts, oldest first; without any argument the first page of those that are not deleted. For an account's wallets, use list_wallets with its id.",
    scope: 'accounts:read',
    input: objectInput({
      type: textInput().optional().meta({ description: 'The exact type, such as organisation.' }),
      status: z
        .int32('must be a whole number of 32 bits')
        .optional()
        .meta({ description: '1 active, 2 suspended, 3 closed.' }),
      search: searchInput().optional().meta({ description: 'Part of the name, ignoring case.' }),
      include_deleted: z
        .boolean('must be a boolean')
        .optional()
        .meta({ description: 'Whether to include deleted accounts.' }),
      ...pageArguments,
    }),
    output: pageOutput(account),
    run: ({ type, status, search, include_deleted: includeDeleted, ...page }, call) =>
      listPage(page, call, {
        tool: 'list_accounts',
        list: ({ accountPages }) => accountPages,
        filter: { type, status, search, includeDeleted },
        viewOf: accountView,
      }),
  }),
  defineTool({
    name: 'get_account',
    title: 'Get an account',
    description: 'One account by its id, deleted or not. To find one by its name, use list_accounts with search.',
    scope: 'accounts:read',
    input: objectInput({ account_id: uuidInput().meta({ description: 'The id, from list_accounts.' }) }),
    output: account,
    missing: 'this node has no account with that account_id: take it from list_accounts',
    run: async ({ account_id: id }, { caller, services }) =>
      accountView(found((await services.accountPages.byIds(caller.nodeId, [id]))[0])),
  }),
];
