import { z } from 'zod';
import { defineTool, listPage, pageArguments, pageOutput } from '../../api/mcp/kit/tool.ts';
import { objectInput, searchInput, textInput, uuidInput } from '../../lib/input.ts';
import { account, accountView } from './accounts.service.ts';

export const accountTools = [
  defineTool({
    name: 'list_accounts',
    title: 'List accounts',
    description:
      "Lists the tenant's accounts, oldest first, without deleted ones. For their wallets, use list_wallets.",
    scope: 'accounts:read',
    input: objectInput({
      account_id: uuidInput().optional().meta({ description: 'Returns only this account.' }),
      type: textInput().optional().meta({ description: 'The exact type.' }),
      status: z
        .int32('must be a whole number of 32 bits')
        .optional()
        .meta({ description: '1 active, 2 suspended, 3 closed.' }),
      search: searchInput().optional().meta({ description: 'Part of the name, ignoring case.' }),
      include_deleted: z.boolean('must be a boolean').optional().meta({ description: 'Include deleted accounts.' }),
      ...pageArguments,
    }),
    output: pageOutput(account),
    run: ({ account_id: id, type, status, search, include_deleted: includeDeleted, ...page }, call) =>
      listPage(page, call, {
        tool: 'list_accounts',
        list: ({ accountPages }) => accountPages,
        filter: { id, type, status, search, includeDeleted },
        viewOf: accountView,
      }),
  }),
];
