import type { Request } from 'express';
import type { oas31 } from 'zod-openapi';
import { IDS } from '../../api/openapi/examples.ts';
import { json } from '../../api/openapi/operation.ts';
import { sendPage } from '../../api/rest/rest-call.ts';
import { route } from '../../api/rest/route.ts';
import { callerOf } from '../../gateway/exchange/exchange.ts';
import { type Issue, invalidRequest } from '../../platform/errors.ts';
import type { Accounts } from './accounts.service.ts';

/** The default and the maximum of each parameter of a list (docs/contract.md, 8-01, 8-02); the minimum of each is 1. */
const PAGE_PARAMETERS = {
  page: { ifAbsent: 1, atMost: Number.MAX_SAFE_INTEGER },
  limit: { ifAbsent: 10, atMost: 100 },
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
      ...pageParameters(),
      {
        name: 'include_deleted',
        in: 'query',
        description: '`true` includes deleted accounts; any other value does not.',
        schema: { type: 'string' },
      },
    ],
    responses: {
      200: json('A page of accounts, with the exact total over all pages.', 'AccountPage', {
        data: [
          {
            id: 'a7b0c9d8-1e2f-4a3b-8c5d-6e7f8a9b0c1d',
            name: 'Treasury',
            node_id: IDS.node_id,
            type: 'organisation',
            status: 1,
            created_at: '2026-11-01T08:00:00.000Z',
            updated_at: '2026-11-20T16:45:30.250Z',
            deleted_at: null,
          },
        ],
        page: 1,
        per_page: 10,
        total: 1,
      }),
    },
  },
  handlers: ({ accounts }: { accounts: Accounts }) => [
    async (req, res) => {
      const { page, limit } = pageQuery(req.query);
      const includeDeleted = req.query.include_deleted === 'true';
      const { data, total } = await accounts.page({ nodeId: callerOf(req).nodeId, page, limit, includeDeleted });
      await sendPage(res, { data, page, per_page: limit, total });
    },
  ],
});

/** Returns the OpenAPI parameters `page` and `limit`. */
function pageParameters(): oas31.ParameterObject[] {
  return Object.entries(PAGE_PARAMETERS).map(([name, { ifAbsent, atMost }]) => ({
    name,
    in: 'query',
    schema: { type: 'integer', minimum: 1, maximum: atMost, default: ifAbsent },
  }));
}

/**
 * Reads `page` (from 1) and `limit` (rows per page, 1 to 100), each in decimal digits and given at most once.
 * @throws Refusal 400 that names each invalid parameter.
 */
function pageQuery(query: Request['query']) {
  const issues: Issue[] = [];
  const page = positive(query, 'page', issues);
  const limit = positive(query, 'limit', issues);
  if (issues.length > 0) throw invalidRequest(issues);
  return { page, limit };
}

function positive(query: Request['query'], name: keyof typeof PAGE_PARAMETERS, issues: Issue[]): number {
  const { ifAbsent, atMost } = PAGE_PARAMETERS[name];
  const text = query[name];
  if (text === undefined) return ifAbsent;
  const value = typeof text === 'string' && /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  if (Array.isArray(text)) issues.push({ path: name, message: 'must be given once' });
  else if (!(value >= 1 && value <= atMost))
    issues.push({ path: name, message: `must be a whole number from 1 to ${atMost}` });
  return value;
}
