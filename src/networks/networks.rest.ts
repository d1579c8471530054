import { type Request, type Response, Router } from 'express';
import { z } from 'zod';
import { invalidRequest } from '../errors/app-error.ts';
import { exchangeOf, principalOf } from '../gateway/exchange.ts';
import { uuidInput } from '../lib/input.ts';
import { parsed } from '../rest/parsed.ts';
import { orRefuse } from '../rest/refusals.ts';
import { sendEmpty } from '../rest/send.ts';
import type { NetworkAssignments } from './network-assignments.service.ts';

export const networkPath = z.object({ wallet_id: uuidInput(), network_id: uuidInput() });

/** POST /v1/wallets/{wallet_id}/networks/{network_id} (specification section 4.4). */
export function networksRouter(assignments: NetworkAssignments): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.post('/v1/wallets/:wallet_id/networks/:network_id', (req, res) => assign(assignments, req, res));
  return router;
}

/** A body, which nobody asked for, is left to the server to discard; of one over the endpoint's limit the rest is not read. */
async function assign(assignments: NetworkAssignments, req: Request, res: Response): Promise<void> {
  const { wallet_id: walletId, network_id: networkId } = parsed(networkPath, req.params);
  const outcome = await orRefuse(assignments.assign(principalOf(req).nodeId, walletId, networkId));
  if (outcome === 'other_chain') {
    throw invalidRequest([{ path: 'network_id', message: "must be a network of the wallet's chain" }]);
  }
  if (!req.complete && isTooLong(req)) res.setHeader('Connection', 'close');
  sendEmpty(res, 204);
}

function isTooLong(req: Request): boolean {
  const { 'transfer-encoding': coding, 'content-length': length = '0' } = req.headers;
  return coding !== undefined || Number(length) > (exchangeOf(req).match?.endpoint.max_body_bytes ?? 0);
}
