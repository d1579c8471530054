import {
  change,
  NOT_FOUND,
  operate,
  RULE_IDS,
  row,
  ruleInput,
  STORED,
  type Thing,
  type Variables,
} from './graphql-operation.ts';
import type { Things } from './marked-node.ts';
import type { SurfaceRow } from './surface-row.ts';

function previews(): SurfaceRow[] {
  const field = 'query { previewWalletRule(input: $preview) { fires explanation { path reason } } }';
  const preview = (slot: string, thing: Thing, input: (id: string, own: Things) => Variables, more = {}) =>
    row(`Query.previewWalletRule(input.${slot})`, field, thing, '"fires":', {
      ask: (call, id, own) => operate(call, field, { preview: { balances: [], ...input(id, own) } }),
      ...more,
    });
  const alike = { alike: STORED };
  return [
    preview(
      'ruleId',
      (of) => of.rule,
      (ruleId) => ({ ruleId }),
      { says: '"code":"NOT_FOUND"' },
    ),
    ...RULE_IDS.map((at) =>
      preview(
        `rule.${at}`,
        (of) => of.wallet,
        (id, own) => ({ rule: ruleInput(own, at, id) }),
        alike,
      ),
    ),
    preview(
      'balances.networkCurrencyId',
      (of) => of.wallet,
      (id, own) => ({ rule: ruleInput(own), balances: [{ field: 'balance', networkCurrencyId: id, value: 1 }] }),
      alike,
    ),
    preview(
      'transfers.networkCurrencyId',
      (of) => of.wallet,
      (id, own) => ({
        rule: ruleInput(own),
        transfers: [{ networkCurrencyId: id, amount: 1, at: '2026-01-01T00:00:00Z' }],
      }),
      alike,
    ),
  ];
}

function changesOfWallets(): SurfaceRow[] {
  const create = 'createWalletRule(walletId: $ownWallet, input: $rule)';
  const replace = 'replaceWalletRule(walletId: $ownWallet, id: $ownRule, input: $rule)';
  const stored = (name: string, call: string) =>
    RULE_IDS.map((at) => {
      const text = `mutation { done: ${call} { __typename ... on WalletRule { name autoTransferRule { targetWalletId } } } }`;
      return row(`Mutation.${name}(input.${at})`, text, (of) => of.wallet, '"__typename":"WalletRule"', {
        ask: (send, id, { wallet: ownWallet, rule: ownRule, ...own }) =>
          operate(send, text, {
            ownWallet,
            ownRule,
            rule: ruleInput({ wallet: ownWallet, rule: ownRule, ...own }, at, id),
          }),
        alike: STORED,
      });
    });
  return [
    change('createWalletRule(walletId)', 'createWalletRule(walletId: $id, input: $rule)', (of) => of.wallet),
    ...stored('createWalletRule', create),
    change(
      'replaceWalletRule(walletId)',
      'replaceWalletRule(walletId: $id, id: $ownRule, input: $rule)',
      (of) => of.wallet,
    ),
    change(
      'replaceWalletRule(id)',
      'replaceWalletRule(walletId: $ownWallet, id: $id, input: $rule, ifVersion: 1)',
      (of) => of.rule,
    ),
    ...stored('replaceWalletRule', replace),
    change('setWalletRuleStatus(id)', 'setWalletRuleStatus(id: $id, status: DISABLED)', (of) => of.rule),
    row(
      'Mutation.assignNetwork(walletId)',
      'mutation { done: assignNetwork(walletId: $id, networkId: $ownNetwork) { __typename ... on Error { message } } }',
      (of) => of.wallet,
      NOT_FOUND,
      {
        ask: (call, id, own) =>
          operate(call, 'mutation { assignNetwork(walletId: $id, networkId: $ownNetwork) { __typename } }', {
            id,
            ownNetwork: own.network,
          }),
      },
    ),
  ];
}

/** Everything of a rule that can name a thing. */
export const RULE_ROWS: readonly SurfaceRow[] = [...previews(), ...changesOfWallets()];
