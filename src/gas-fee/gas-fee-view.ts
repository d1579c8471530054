import type { GasFee } from './gas-fees.service.ts';

/** What is told of a network's fees (specification section 4.9): in wei, as decimal text. */
export function gasFeeView(fee: GasFee) {
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
