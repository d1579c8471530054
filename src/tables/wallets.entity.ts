import { defineEntity, p } from '@mikro-orm/core';

/** A wallet of an account, on one chain. */
export const Wallet = defineEntity({
  name: 'Wallet',
  tableName: 'wallets',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    accountId: p.uuid(),
    chainId: p.uuid(),
    createdAt: p.datetime(6).$type<string>(),
    updatedAt: p.datetime(6).$type<string>(),
    version: p.bigint().$type<string>().default('0'),
  },
});

/** A network on which a wallet operates (specification section 4.4). */
export const WalletNetwork = defineEntity({
  name: 'WalletNetwork',
  tableName: 'wallet_networks',
  properties: {
    walletId: p.uuid().primary(),
    networkId: p.uuid().primary(),
    nodeId: p.uuid(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});
