import { Router } from 'express';
import { exchangeOf, principalOf } from '../gateway/exchange.ts';
import { pageQuery } from '../rest/page-query.ts';
import { sendJson } from '../rest/send.ts';
import type { Accounts } from './accounts.service.ts';

/** GET /v1/accounts (specification section 4.8). */
export function accountsRouter(accounts: Accounts): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get('/v1/accounts', async (req, res) => {
    const query = new URLSearchParams(exchangeOf(req).target?.query);
    const { page, limit } = pageQuery(query);
    const includeDeleted = query.get('include_deleted') === 'true';
    const { data, total } = await accounts.page({ nodeId: principalOf(req).nodeId, page, limit, includeDeleted });
    sendJson(res, 200, { data, page, per_page: limit, total });
  });
  return router;
}
