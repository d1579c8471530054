import { randomUUID } from 'node:crypto';
import type { Portcullis } from '../harness.ts';
import { rows } from '../oauth/clients.ts';

/** Adds a second chain to the demo, with a network, a currency and a wallet of the account Acme Treasury; returns their ids. */
export async function addBitcoin(p: Portcullis) {
  const ids = { chain_id: randomUUID(), network_id: randomUUID(), currency_id: randomUUID(), wallet_id: randomUUID() };
  const { chain_id, network_id: id } = ids;
  const { node_id, account_id } = p.demo;
  const at = new Date().toISOString();
  const own = { id: ids.wallet_id, node_id, account_id, chain_id, created_at: at, updated_at: at };
  await rows(p).run((k) => k.insertInto('chains').values({ id: chain_id, name: 'bitcoin' }));
  await rows(p).run((k) => k.insertInto('networks').values({ id, chain_id, name: 'Bitcoin mainnet' }));
  const currency = { id: ids.currency_id, network_id: id, symbol: 'BTC', name: 'Bitcoin', decimals: 8 };
  await rows(p).run((k) => k.insertInto('network_currencies').values(currency));
  await rows(p).run((k) => k.insertInto('wallets').values(own));
  return ids;
}
