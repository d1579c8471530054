import { defineEntity, p } from '@mikro-orm/core';
import { withinNode } from './references.ts';
import {
  type AutoTransferRule,
  type PermissionlessTransferLimitRule,
  RULE_STATUSES,
  RULE_TYPES,
  type RuleStatus,
  type RuleType,
  type SignAndApproveRule,
} from './wallet-rule-content.ts';
import { Wallet } from './wallets.entity.ts';

/** Returns the columns that a rule and each of its versions have. */
function content() {
  return {
    walletId: p.uuid(),
    name: p.text(),
    type: p.text().$type<RuleType>(),
    networkId: p.uuid(),
    networkCurrencyId: p.uuid(),
    priority: p.smallint().nullable(),
    autoTransferRule: p.json().$type<AutoTransferRule>().nullable(),
    signAndApproveRule: p.json().$type<SignAndApproveRule>().nullable(),
    permissionlessTransferLimitRule: p.json().$type<PermissionlessTransferLimitRule>().nullable(),
  };
}

/**
 * A wallet rule (docs/contract.md, 2.6). Decimals are strings in the JSON columns, so that no reader loses digits.
 * Only `walletId` is checked to exist; the ids of networks, currencies, target wallets and users are not.
 */
export const WalletRule = defineEntity({
  name: 'WalletRule',
  tableName: 'wallet_rules',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    ...content(),
    wallet: withinNode(Wallet, 'wallet_id').deleteRule('cascade'),
    type: p.enum(RULE_TYPES),
    status: p.enum(RULE_STATUSES).default('active'),
    version: p.integer().default(1),
    createdAt: p.datetime(6).$type<string>(),
    updatedAt: p.datetime(6).$type<string>(),
  },
  uniques: [{ properties: ['nodeId', 'id'] }],
  indexes: [
    { name: 'wallet_rules_page', properties: ['nodeId', 'walletId', 'createdAt', 'id'] },
    { name: 'wallet_rules_of_node', properties: ['nodeId', 'createdAt', 'id', 'updatedAt', 'type'] },
  ],
});

/**
 * One version of a wallet rule: its content, who wrote it and when. Triggers of `wallet_rules` insert it with every
 * write; the writer adds itself in the same transaction, and is null where it did not. When a rule goes with its
 * wallet, its last version is that end, which is `deleted` and repeats the content.
 */
export const WalletRuleVersion = defineEntity({
  name: 'WalletRuleVersion',
  tableName: 'wallet_rule_versions',
  properties: {
    nodeId: p.uuid().primary(),
    ruleId: p.uuid().primary(),
    version: p.integer().primary(),
    ...content(),
    status: p.text().$type<RuleStatus>(),
    deleted: p.boolean().default(false),
    at: p.datetime(6).$type<string>(),
    subject: p.text().nullable(),
    clientId: p.text().nullable(),
    /** The correlation id of the request in the form that its audit record has. */
    correlationId: p.text().nullable(),
    /** Why the rule was changed, as its writer says. */
    reason: p.text().nullable(),
  },
});
