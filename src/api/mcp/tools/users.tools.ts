import { z } from 'zod';
import { receiptView } from '../../../domain/users/erasure-receipt.ts';
import { userView as restView, type UserRow } from '../../../domain/users/users.service.ts';
import { objectInput, searchInput, uuidInput } from '../../../lib/input.ts';
import { isoFromPg } from '../../../lib/instants.ts';
import { instant, listPage, pageArguments, pageOutput, uuid } from '../kit/list-tools.ts';
import { defineTool, found } from '../kit/tool.ts';

export const user = z.strictObject({
  id: uuid(),
  external_id: z.string().nullable().meta({ description: "The migrating system's own identifier." }),
  name: z.string(),
  surname: z.string(),
  email: z.string().meta({ description: 'Empty where there is none.' }),
  address: z.string().meta({ description: "The wallet's address on the chain, lower-cased." }),
  identity_number: z.string(),
  kyc: z
    .strictObject({
      is_verified: z.boolean(),
      token_sent: z.boolean(),
      token_sent_at: instant().nullable(),
      token_tx_hash: z.string().nullable(),
    })
    .nullable()
    .meta({ description: 'null: not verified, and no KYC token was sent.' }),
  created_at: instant(),
});

const userId = uuidInput().meta({ description: 'The id, from list_users.' });
const missing = 'this node has no user with that user_id: take it from list_users';

/** Returns the view of a user that agents see. */
export function userView(row: UserRow): z.input<typeof user> {
  return { ...restView(row), created_at: isoFromPg(row.created_at) };
}

export const userTools = [
  defineTool({
    name: 'list_users',
    title: 'List users',
    description: "The node's users, oldest first. They are people: ask only for those you need.",
    scope: 'users:read',
    input: objectInput({
      search: searchInput()
        .optional()
        .meta({ description: 'Part of the name, surname, email, external_id or address, ignoring case.' }),
      kyc_verified: z.boolean('must be a boolean').optional().meta({ description: 'Whether the users are verified.' }),
      ...pageArguments,
    }),
    output: pageOutput(user),
    run: ({ search, kyc_verified: kycVerified, ...page }, call) =>
      listPage(page, call, {
        tool: 'list_users',
        list: ({ userPages }) => userPages,
        filter: { search, kycVerified },
        viewOf: userView,
      }),
  }),
  defineTool({
    name: 'get_user',
    title: 'Get a user',
    description: 'One user by the id, with whether the KYC token was sent.',
    scope: 'users:read',
    input: objectInput({ user_id: userId }),
    output: user,
    missing,
    run: async ({ user_id: id }, { caller, services }) =>
      userView(found(await services.userPages.find(caller.nodeId, id))),
  }),
  defineTool({
    name: 'erase_user',
    title: "Erase a user's personal data",
    description:
      'Erases names, email, external id and wallet address of a user for good: in the user, in migrations, and in stored responses and audit records of requests that showed the user. It cannot be undone; do it only if a person asked for this erasure.',
    scope: 'users:erase',
    effect: { isDestructive: true, isIdempotent: true },
    input: objectInput({ user_id: userId }),
    output: user.extend({
      erasure: z
        .strictObject({ erased_at: instant(), records: z.int(), responses: z.int() })
        .meta({ description: 'When, and how many audit records and stored responses were erased.' }),
    }),
    missing,
    run: async ({ user_id: id }, { caller, services }) => {
      const erased = await services.userErasure.erase(caller.nodeId, id);
      return { ...userView(erased), erasure: receiptView(erased.erasure) };
    },
  }),
];
