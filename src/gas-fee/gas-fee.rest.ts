import { Router } from 'express';
import { sendJson } from '../rest/send.ts';
import type { GasFee, GasFees } from './gas-fees.service.ts';

/** GET /v2/blockchain/gas-fee (specification section 4.9): fees in wei, as decimal text. */
export function gasFeeRouter(gasFees: Pick<GasFees, 'list'>): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get('/v2/blockchain/gas-fee', async (_req, res) => {
    sendJson(res, 200, { data: (await gasFees.list()).map(gasFeeView) });
  });
  return router;
}

function gasFeeView(fee: GasFee) {
  if ('error' in fee) return { network_id: fee.networkId, error: fee.error };
  return {
    network_id: fee.networkId,
    chain_id: fee.chainId,
    base_fee: fee.baseFee,
    priority_fee: fee.priorityFee,
    gas_price: fee.gasPrice,
    block_number: fee.blockNumber,
    updated_at: new Date(fee.updatedAtMs).toISOString(),
  };
}
