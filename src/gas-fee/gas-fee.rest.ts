import { Router } from 'express';
import { sendJson } from '../rest/send.ts';
import { gasFeeView } from './gas-fee-view.ts';
import type { GasFees } from './gas-fees.service.ts';

/** GET /v2/blockchain/gas-fee (specification section 4.9): fees in wei, as decimal text. */
export function gasFeeRouter(gasFees: Pick<GasFees, 'list'>): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get('/v2/blockchain/gas-fee', async (_req, res) => {
    sendJson(res, 200, { data: (await gasFees.list()).map(gasFeeView) });
  });
  return router;
}
