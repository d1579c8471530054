import { z } from 'zod';
import { defineTool, listPage, pageArguments, pageOutput } from '../../api/mcp/kit/tool.ts';
import { instant, uuid } from '../../lib/fields.ts';
import { objectInput, searchInput, uuidInput } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { userView } from './users.service.ts';

const user = z.strictObject({
  id: uuid(),
  external_id: z.string().nullable().meta({ description: "The migrating system's own identifier." }),
  name: z.string(),
  surname: z.string(),
  email: z.string().meta({ description: 'Empty if there is none.' }),
  address: z.string().meta({ description: "The wallet's address on the chain, in lower case." }),
  identity_number: z.string(),
  kyc: z
    .strictObject({
      is_verified: z.boolean(),
      token_sent: z.boolean(),
      token_sent_at: instant().nullable(),
      token_tx_hash: z.string().nullable(),
    })
    .nullable()
    .meta({ description: 'null if the user is not verified and no KYC token was sent.' }),
  created_at: instant(),
});

export const userTools = [
  defineTool({
    name: 'list_users',
    title: 'List users',
    description: "Lists the tenant's users, oldest first. This is personal data: request only what you need.",
    scope: 'users:read',
    input: objectInput({
      user_id: uuidInput().optional().meta({ description: 'Returns only this user.' }),
      search: searchInput()
        .optional()
        .meta({ description: 'Part of the name, surname, email, external_id or address, ignoring case.' }),
      kyc_verified: z.boolean('must be a boolean').optional().meta({ description: 'Whether the users are verified.' }),
      ...pageArguments,
    }),
    output: pageOutput(user),
    run: ({ user_id: id, search, kyc_verified: kycVerified, ...page }, call) =>
      listPage(page, call, {
        tool: 'list_users',
        list: ({ userPages }) => userPages,
        filter: { id, search, kycVerified },
        viewOf: (row) => ({ ...userView(row), created_at: isoFromPg(row.created_at) }),
      }),
  }),
];
