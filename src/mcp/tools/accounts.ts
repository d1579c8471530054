import { z } from 'zod';
import type { AccountRow } from '../../accounts/account-pages.service.ts';
import { notFoundRefusal } from '../../errors/refusal.ts';
import { objectInput, searchInput, textInput, uuidInput } from '../../lib/input.ts';
import { isoFromPg, isoFromPgOrNull } from '../../lib/pg-time.ts';
import { instant, placeOf, uuid } from '../members.ts';
import { listPage, pageArguments, pageOutput } from '../pages.ts';
import { defineTool } from '../tool.ts';

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

const listAccounts = defineTool({
  name: 'list_accounts',
  title: 'List accounts',
  description:
    "The node's accounts, oldest first; without any argument the first page of those that are not deleted. For what an account holds, take list_wallets with its id.",
  scope: 'accounts:read',
  input: objectInput({
    type: textInput().optional().meta({ description: 'Exactly this type, such as organisation.' }),
    status: z
      .int32('must be a whole number of 32 bits')
      .optional()
      .meta({ description: '1 active, 2 suspended, 3 closed.' }),
    search: searchInput().optional().meta({ description: 'A part of the name, in either case.' }),
    include_deleted: z.boolean('must be a boolean').optional().meta({ description: 'Deleted ones too.' }),
    ...pageArguments,
  }),
  output: pageOutput(account),
  run({ type, status, search, include_deleted: includeDeleted, ...page }, call) {
    const { accountPages } = call.services;
    const { nodeId } = call.caller;
    const filter = { type, status, search, includeDeleted };
    return listPage(page, call, {
      list: 'list_accounts',
      read: (request) => accountPages.page(nodeId, filter, request),
      keyOf: placeOf,
      viewOf: accountView,
      count: () => accountPages.count(nodeId, filter),
    });
  },
});

const getAccount = defineTool({
  name: 'get_account',
  title: 'Get an account',
  description: 'One account by its id, deleted or not. To find one by its name, take list_accounts with search.',
  scope: 'accounts:read',
  input: objectInput({ account_id: uuidInput().meta({ description: 'From list_accounts.' }) }),
  output: account,
  missing: 'this node has no account with that account_id: take it from list_accounts',
  async run({ account_id: id }, { caller, services }) {
    const [row] = await services.accountPages.byIds(caller.nodeId, [id]);
    if (!row) throw notFoundRefusal();
    return accountView(row);
  },
});

function accountView({ created_at, updated_at, deleted_at, ...row }: AccountRow) {
  return {
    ...row,
    created_at: isoFromPg(created_at),
    updated_at: isoFromPg(updated_at),
    deleted_at: isoFromPgOrNull(deleted_at),
  };
}

export const accountTools = [listAccounts, getAccount];
