import { Router } from 'express';
import { z } from 'zod';
import { principalOf } from '../gateway/exchange.ts';
import { uuidInput } from '../lib/input.ts';
import { parsed } from '../rest/parsed.ts';
import { orRefuse } from '../rest/refusals.ts';
import { sendJson } from '../rest/send.ts';
import type { Assets } from './assets.service.ts';

export const assetPath = z.object({ id: uuidInput() });

/** GET /v2/admin/tokens/{id} (specification section 4.9). */
export function assetsRouter(assets: Assets): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get('/v2/admin/tokens/:id', async (req, res) => {
    const { id } = parsed(assetPath, req.params);
    sendJson(res, 200, await orRefuse(assets.view(principalOf(req).nodeId, id)));
  });
  return router;
}
