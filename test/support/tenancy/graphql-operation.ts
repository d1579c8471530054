import type { Answer } from '../harness.ts';
import type { Things } from './marked-node.ts';
import type { Call, SurfaceRow } from './surface-row.ts';

export type Variables = Record<string, unknown>;
export type Thing = (of: Things) => string;

export const NOT_FOUND = '"__typename":"NotFoundError"';
export const STORED = 'the id is stored as it came, and resolved nowhere';
const TYPES: Record<string, string> = {
  ...{ rule: 'WalletRuleInput!', preview: 'PreviewWalletRuleInput!', input: 'PreviewWalletRuleInput!' },
};

/** Sends an operation; what it declares is what it uses of `id`, `own…`, `rule` and `preview`. */
export function operate(call: Call, text: string, variables: Variables = {}, accept = '*/*'): Promise<Answer> {
  const [kind = 'query'] = /^\w+/.exec(text) ?? [];
  const used = [...new Set([...text.matchAll(/\$(\w+)/g)].map(([, name = '']) => name))];
  const types = used.map((name) => `$${name}: ${TYPES[name] ?? 'ID!'}`);
  const query = text.replace(kind, used.length === 0 ? kind : `${kind} (${types.join(', ')})`);
  const given = Object.fromEntries(used.map((name) => [name, variables[name]]));
  return call('POST', '/graphql', { json: { query, variables: given }, headers: { accept } });
}

/** A rule in whose every id is the caller's own but for one place. */
export function ruleInput(own: Things, at?: string, id = ''): Variables {
  const idAt = (place: string, otherwise: string) => (place === at ? id : otherwise);
  const logic = idAt('autoTransferRule.ruleLogic', own.asset);
  return {
    ...{ name: 'r', type: 'auto_transfer', networkId: idAt('networkId', own.network) },
    networkCurrencyId: idAt('networkCurrencyId', own.asset),
    autoTransferRule: {
      ruleLogic: { and: [{ field: 'balance', op: 'lt', value: 1, network_currency_id: logic }] },
      ...{ type: 'auto', amount: 1, targetWalletId: idAt('autoTransferRule.targetWalletId', own.wallet) },
    },
    signAndApproveRule: { mandatoryUserId: idAt('signAndApproveRule.mandatoryUserId', own.user) },
  };
}

/** The places of a rule where a thing is named. */
export const RULE_IDS: readonly string[] = [
  ...['networkId', 'networkCurrencyId', 'autoTransferRule.targetWalletId', 'autoTransferRule.ruleLogic'],
  'signAndApproveRule.mandatoryUserId',
];

/** A row whose operation takes what is named as `$id`. */
export function row(
  covers: string,
  text: string,
  thing: Thing,
  says: string,
  more: Partial<SurfaceRow> = {},
): SurfaceRow {
  const ask: SurfaceRow['ask'] = (call, id, own) =>
    operate(call, text, { id, ownWallet: own.wallet, ownRule: own.rule, rule: ruleInput(own) });
  return { covers, thing, ask, says, ...more };
}

/** A row of a mutation, called so. */
export function change(
  covers: string,
  call: string,
  thing: Thing,
  says = NOT_FOUND,
  more: Partial<SurfaceRow> = {},
): SurfaceRow {
  const text = `mutation { done: ${call} { __typename ... on Error { message } } }`;
  return row(`Mutation.${covers}`, text, thing, says, more);
}
