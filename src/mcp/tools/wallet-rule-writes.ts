import { z } from 'zod';
import { objectInput, wholeNumberInput } from '../../lib/input.ts';
import { walletRuleTextInput } from '../../wallet-rules/wallet-rule.input.ts';
import { RULE_STATUSES } from '../../wallet-rules/wallet-rule.ts';
import { idempotencyKey, once } from '../once.ts';
import { defineTool } from '../tool.ts';
import { RULE_MEMBERS, ruleId, walletId, walletRule, walletRuleView } from './wallet-rule-members.ts';

const MAX_VERSION = 2_147_483_647;

const createWalletRule = defineTool({
  name: 'create_wallet_rule',
  title: 'Create a wallet rule',
  description:
    'Creates a rule of a wallet, which is active at once. Called again it creates another one, unless it has the same idempotency_key. Try it with preview_wallet_rule first.',
  scope: 'wallet-rules:write',
  effect: { isDestructive: false, isIdempotent: false },
  input: objectInput({ wallet_id: walletId, rule: walletRuleTextInput, idempotency_key: idempotencyKey }),
  describes: RULE_MEMBERS,
  output: walletRule,
  missing: 'this node has no wallet with that wallet_id: take it from list_wallets',
  run({ idempotency_key: key, ...input }, call) {
    const { wallet_id: id, rule } = input;
    const work = async () => walletRuleView(await call.services.walletRules.create(call.caller.nodeId, id, rule));
    return once(call, { name: 'create_wallet_rule', key, input, work });
  },
});

const replaceWalletRule = defineTool({
  name: 'replace_wallet_rule',
  title: 'Replace a wallet rule',
  description:
    'Replaces a rule in full: what is left out is gone, so begin with what get_wallet_rule gives. Raises its version; its status stays. Give if_version, so that a change of somebody else in between is not lost.',
  scope: 'wallet-rules:write',
  effect: { isDestructive: true, isIdempotent: false },
  input: objectInput({
    wallet_id: walletId,
    rule_id: ruleId,
    rule: walletRuleTextInput,
    if_version: wholeNumberInput(1, MAX_VERSION)
      .optional()
      .meta({ description: 'Only where the rule still has this version, from get_wallet_rule.' }),
  }),
  describes: RULE_MEMBERS,
  output: walletRule,
  missing:
    'this node has no wallet with that wallet_id, or the wallet no rule with that rule_id: list_wallet_rules has both',
  async run({ wallet_id, rule_id: id, rule, if_version: version }, { caller, services }) {
    const versions = version === undefined ? undefined : [version];
    return walletRuleView(
      await services.walletRules.replace(caller.nodeId, { walletId: wallet_id, id }, rule, versions),
    );
  },
});

const setWalletRuleStatus = defineTool({
  name: 'set_wallet_rule_status',
  title: 'Enable or disable a wallet rule',
  description: 'Sets whether a rule can fire; nothing else of it changes. Disabling can be undone by the same tool.',
  scope: 'wallet-rules:write',
  effect: { isDestructive: false, isIdempotent: true },
  input: objectInput({
    rule_id: ruleId,
    status: z
      .enum(RULE_STATUSES, `must be one of ${RULE_STATUSES.join(', ')}`)
      .meta({ description: 'disabled: it is kept and never fires.' }),
  }),
  output: walletRule,
  missing: 'this node has no rule with that rule_id: take it from list_wallet_rules',
  async run({ rule_id: id, status }, { caller, services }) {
    return walletRuleView(await services.walletRules.setStatus(caller.nodeId, id, status));
  },
});

export const walletRuleWriteTools = [createWalletRule, replaceWalletRule, setWalletRuleStatus];
