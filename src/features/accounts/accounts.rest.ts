import { z } from 'zod';
import { type DocumentedSchemas, json } from '../../api/openapi/operation.ts';
import { route, sendPage } from '../../api/rest/route.ts';
import { callerOf } from '../../gateway/exchange/exchange.ts';
import { exampleOf } from '../../lib/fields.ts';
import { parseOrReject } from '../../platform/errors.ts';
import { type Accounts, account } from './accounts.service.ts';

/** The default and the maximum of each parameter of a list (docs/contract.md, 8-01, 8-02); the minimum of each is 1. */
const PAGE_PARAMETERS = {
  page: { ifAbsent: 1, atMost: Number.MAX_SAFE_INTEGER },
  limit: { ifAbsent: 10, atMost: 100 },
};

/** Returns the schema of a parameter: decimal digits, given at most once. */
function pageParameter(name: keyof typeof PAGE_PARAMETERS) {
  const { ifAbsent, atMost } = PAGE_PARAMETERS[name];
  const message = `must be a whole number from 1 to ${atMost}`;
  return z
    .string('must be given once')
    .regex(/^[0-9]+$/, message)
    .transform(Number)
    .refine((number) => number >= 1 && number <= atMost, message)
    .default(ifAbsent);
}

const pageQuery = z.object({ page: pageParameter('page'), limit: pageParameter('limit') });

/** What accounts add to the OpenAPI document. */
export const accountSchemas: DocumentedSchemas = {
  outputs: {
    AccountPage: z.strictObject({
      data: z.array(account),
      page: z.int().min(1),
      per_page: z.int().min(1).meta({ description: 'The requested limit.' }),
      total: z.int().min(0).meta({ description: 'The total number of items over all pages.' }),
    }),
  },
};

/** Lists accounts in pages (docs/contract.md, 4.8-01). */
export const listAccounts = route({
  method: 'GET',
  path: '/v1/accounts',
  operation: {
    operationId: 'listAccounts',
    tag: 'Accounts',
    summary: 'List accounts, oldest first',
    description: 'A page past the end is empty. Unknown parameters are ignored.',
    parameters: [
      ...Object.entries(PAGE_PARAMETERS).map(([name, { ifAbsent, atMost }]) => ({
        name,
        in: 'query' as const,
        schema: { type: 'integer' as const, minimum: 1, maximum: atMost, default: ifAbsent },
      })),
      {
        name: 'include_deleted',
        in: 'query',
        description: '`true` includes deleted accounts; any other value does not.',
        schema: { type: 'string' },
      },
    ],
    responses: {
      200: json('A page of accounts, with the exact total over all pages.', 'AccountPage', {
        data: [exampleOf(account)],
        page: 1,
        per_page: 10,
        total: 1,
      }),
    },
  },
  handlers: ({ accounts }: { accounts: Accounts }) => [
    async (req, res) => {
      const { page, limit } = parseOrReject(pageQuery, req.query);
      const includeDeleted = req.query.include_deleted === 'true';
      const { data, total } = await accounts.page({ nodeId: callerOf(req).nodeId, page, limit, includeDeleted });
      await sendPage(res, { data, page, per_page: limit, total });
    },
  ],
});
