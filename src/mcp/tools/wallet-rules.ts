import { z } from 'zod';
import { notFoundRefusal } from '../../errors/refusal.ts';
import { objectInput } from '../../lib/input.ts';
import { previewInput } from '../../wallet-rules/preview.input.ts';
import { decimal, placeOf } from '../members.ts';
import { listPage, pageArguments, pageOutput } from '../pages.ts';
import { defineTool } from '../tool.ts';
import { RULE_MEMBERS, ruleId, walletId, walletRule, walletRuleView } from './wallet-rule-members.ts';

const listWalletRules = defineTool({
  name: 'list_wallet_rules',
  title: 'List the rules of a wallet',
  description: "A wallet's rules, active and disabled, oldest first.",
  scope: 'wallet-rules:read',
  input: objectInput({ wallet_id: walletId, ...pageArguments }),
  output: pageOutput(walletRule),
  missing: 'this node has no wallet with that wallet_id: take it from list_wallets',
  async run({ wallet_id: id, ...page }, call) {
    const { walletPages, walletRulePages } = call.services;
    const { nodeId } = call.caller;
    if (!(await walletPages.find(nodeId, id))) throw notFoundRefusal();
    return listPage(page, call, {
      list: 'list_wallet_rules',
      read: async (request) => (await walletRulePages.ofWallets(nodeId, [id], request)).get(id),
      keyOf: placeOf,
      viewOf: walletRuleView,
      count: async () => (await walletRulePages.countOfWallets(nodeId, [id])).get(id) ?? 0,
    });
  },
});

const getWalletRule = defineTool({
  name: 'get_wallet_rule',
  title: 'Get a wallet rule',
  description: 'One rule by its id, with its version.',
  scope: 'wallet-rules:read',
  input: objectInput({ rule_id: ruleId }),
  output: walletRule,
  missing: 'this node has no rule with that rule_id: take it from list_wallet_rules',
  async run({ rule_id: id }, { caller, services }) {
    const row = await services.walletRulePages.find(caller.nodeId, id);
    if (!row) throw notFoundRefusal();
    return walletRuleView(row);
  },
});

const previewWalletRule = defineTool({
  name: 'preview_wallet_rule',
  title: 'Preview a wallet rule',
  description:
    'Tells whether a rule would fire by balances and transfers that you give, and how each of its conditions comes out. Nothing is changed and nothing is looked up: the facts are yours. Give rule, or rule_id of a stored one, and not both. A condition that the facts do not cover does not hold, and says why.',
  scope: 'wallet-rules:read',
  input: previewInput,
  describes: {
    ...RULE_MEMBERS,
    rule_id: 'A stored rule, from list_wallet_rules; or give rule.',
    balances: 'What the wallet has; may be empty.',
    'balances.field': 'As conditions name it, such as "balance.available".',
    'balances.network_currency_id': 'The currency of value.',
    'balances.value': 'In units of the currency.',
    transfers:
      'For a limit: what was moved. A limit counts those of its currency in its window; without a list it cannot.',
    'transfers.amount': 'In units of the currency: 0 or more.',
    'transfers.at': 'When it was made, or is to be made.',
    at: 'When it is judged; now by default.',
  },
  output: z.strictObject({
    fires: z.boolean().meta({
      description: 'auto_transfer: the transfer would be made. A limit: the transfers stay within it.',
    }),
    explanation: z.array(
      z.strictObject({
        path: z.string().meta({ description: 'Where the condition stands in the rule.' }),
        field: z.string(),
        op: z.string(),
        expected: decimal().nullable(),
        actual: decimal().nullable().meta({ description: 'By the facts; null where they do not tell.' }),
        result: z.boolean(),
        reason: z.string().nullable().meta({ description: 'Why it could not be evaluated.' }),
      }),
    ),
  }),
  missing: 'this node has no rule with that rule_id: take it from list_wallet_rules, or give rule',
  async run(input, { caller, services }) {
    const { fires, explanation } = await services.walletRulePreviews.preview(caller.nodeId, input);
    return {
      fires,
      explanation: explanation.map(({ path, field, op, expected, actual, result, reason }) => {
        return { path, field, op, expected: expected ?? null, actual: actual ?? null, result, reason: reason ?? null };
      }),
    };
  },
});

export const walletRuleTools = [listWalletRules, getWalletRule, previewWalletRule];
