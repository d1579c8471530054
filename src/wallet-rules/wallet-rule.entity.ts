import { defineEntity, p } from '@mikro-orm/core';
import type {
  AutoTransferRule,
  PermissionlessTransferLimitRule,
  RuleStatus,
  RuleType,
  SignAndApproveRule,
} from './wallet-rule.ts';

/**
 * A rule of a wallet (specification section 2.6). Decimals stand as strings in the JSON columns, which keeps every
 * digit whoever reads them. The ids of networks, currencies, target wallet and user are those that were sent.
 */
export const WalletRule = defineEntity({
  name: 'WalletRule',
  tableName: 'wallet_rules',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    walletId: p.uuid(),
    name: p.text(),
    type: p.text().$type<RuleType>(),
    networkId: p.uuid(),
    networkCurrencyId: p.uuid(),
    priority: p.smallint().nullable(),
    autoTransferRule: p.json().$type<AutoTransferRule>().nullable(),
    signAndApproveRule: p.json().$type<SignAndApproveRule>().nullable(),
    permissionlessTransferLimitRule: p.json().$type<PermissionlessTransferLimitRule>().nullable(),
    status: p.text().$type<RuleStatus>().default('active'),
    version: p.integer().default(1),
    createdAt: p.datetime(6).$type<string>(),
    updatedAt: p.datetime(6).$type<string>(),
  },
});
