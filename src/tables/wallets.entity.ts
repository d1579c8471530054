import { defineEntity, p } from '@mikro-orm/core';
import { Account } from './accounts.entity.ts';
import { Chain, Network } from './reference.entity.ts';
import { ofNode, withinNode } from './references.ts';

/** A wallet of an account, on one chain. */
export const Wallet = defineEntity({
  name: 'Wallet',
  tableName: 'wallets',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
    accountId: p.uuid(),
    account: withinNode(Account, 'account_id'),
    chainId: p.manyToOne(Chain).fieldName('chain_id').index('wallets_of_chain'),
    createdAt: p.datetime(6).$type<string>(),
    updatedAt: p.datetime(6).$type<string>(),
    version: p.bigint().$type<string>().defaultRaw('0'),
  },
  uniques: [{ properties: ['nodeId', 'id'] }],
  indexes: [
    { name: 'wallets_page', properties: ['nodeId', 'createdAt', 'id'] },
    { name: 'wallets_of_account', properties: ['nodeId', 'accountId', 'createdAt', 'id'] },
  ],
});

/** A network on which a wallet operates (docs/contract.md, 4.4-01). */
export const WalletNetwork = defineEntity({
  name: 'WalletNetwork',
  tableName: 'wallet_networks',
  properties: {
    walletId: p.uuid().primary(),
    networkId: p.manyToOne(Network).fieldName('network_id').primary().index('wallet_networks_of_network'),
    nodeId: p.uuid(),
    wallet: withinNode(Wallet, 'wallet_id'),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
  indexes: [{ name: 'wallet_networks_page', properties: ['nodeId', 'walletId', 'createdAt', 'networkId'] }],
});
