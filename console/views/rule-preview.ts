import { useEffect, useState } from 'preact/hooks';
import { PreviewWalletRuleDocument, type PreviewWalletRuleInput, type PreviewWalletRuleQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Field, inputOf, LOCAL_TIME, localOf, utcOf } from '../kit/form.ts';
import { type Asked, useAsk } from '../kit/page.ts';
import { Badge } from '../kit/text.ts';
import { conditionsOf, type Draft, LOGIC, nameOf, ownPart, ruleInput, signOf } from './rule-draft.ts';

export type Explanation = PreviewWalletRuleQuery['previewWalletRule']['explanation'][number];

const TYPING_MS = 350;

/** What a rule is evaluated by: values of fields in currencies, by both; and transfers. */
export interface Facts {
  values: Readonly<Record<string, string>>;
  transfers: readonly { amount: string; at: string }[];
}

/** Returns the fields in currencies that the conditions name, each once. */
function balancesOf(draft: Draft): { key: string; field: string; networkCurrencyId: string }[] {
  const named = conditionsOf(draft.logic).map(([, { field, network_currency_id: id }]) => ({ field, networkCurrencyId: id.trim().toLowerCase() }));
  const keyed = named.map((balance) => ({ ...balance, key: `${balance.field} ${balance.networkCurrencyId}` }));
  return [...new Map(keyed.filter(({ field }) => field !== '').map((balance) => [balance.key, balance])).values()];
}

function previewInput(draft: Draft, { values, transfers }: Facts): PreviewWalletRuleInput {
  const rule = ruleInput(draft);
  if (ownPart(draft) === 'autoTransferRule') {
    const balances = balancesOf(draft).map(({ key, ...balance }) => ({ ...balance, value: values[key]?.trim() ?? '' }));
    return { rule, balances: balances.filter(({ value }) => value !== '') };
  }
  const given = transfers.filter(({ amount, at }) => amount !== '' && utcOf(at) !== '');
  const { networkCurrencyId } = rule;
  return { rule, balances: [], transfers: given.map(({ amount, at }) => ({ networkCurrencyId, amount: amount.trim(), at: utcOf(at) })) };
}

/** Evaluates a complete draft when typing pauses. Returns nothing for the result of an earlier draft. */
export function usePreview(draft: Draft, facts: Facts): Asked<PreviewWalletRuleQuery> {
  const input = previewInput(draft, facts);
  const key = JSON.stringify(input);
  const [settled, setSettled] = useState({ key, input });
  useEffect(() => {
    const timer = setTimeout(() => setSettled({ key, input }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [key]);
  const isComplete = !JSON.stringify({ ...settled.input.rule, name: 'any' }).includes(':""');
  const asked = useAsk(PreviewWalletRuleDocument, isComplete ? { input: settled.input } : undefined);
  return settled.key === key && !asked.isLoading ? asked : { ...asked, isLoading: true, data: undefined, failure: undefined };
}

/** Returns a path of an explanation as issues have it: `auto_transfer_rule.rule_logic.and[1]`. */
function pathOf(path: string): string {
  return path.replace('auto_transfer_rule.rule_logic', LOGIC).replaceAll(/\[(\d+)\]/g, '.$1');
}

/** Returns explanations by the paths of their conditions. */
export function byPath({ data }: Asked<PreviewWalletRuleQuery>): ReadonlyMap<string, Explanation> {
  return new Map(data?.previewWalletRule.explanation.map((explanation) => [pathOf(explanation.path), explanation]));
}

/** How one condition comes out: whether it holds, by which value, and why not. */
export function Verdict({ of: explanation }: { of: Explanation | undefined }) {
  if (!explanation) return html`<p class="verdict muted">Not evaluated yet.</p>`;
  const { result, actual, expected, op, reason } = explanation;
  const compared = expected === null ? '' : `actual ${actual ?? 'unknown'}, expected ${signOf(op)} ${expected}`;
  const word = actual === null && expected !== null ? 'cannot be evaluated' : result ? 'is true' : 'is false';
  return html`<p class="verdict"><${Badge} tone=${result ? 'good' : 'bad'}>${word}<//> ${[compared, reason].filter(Boolean).join(': ')}</p>`;
}

type PanelInput = { draft: Draft; preview: Asked<PreviewWalletRuleQuery>; facts: Facts; onFacts(facts: Facts): void };

/** The facts that a draft is evaluated with, and the result. */
export function PreviewPanel({ draft, preview, facts, onFacts }: PanelInput) {
  const isLimit = ownPart(draft) === 'permissionlessTransferLimitRule';
  const { values, transfers } = facts;
  const replace = (index: number, ...by: Facts['transfers'][number][]) => onFacts({ ...facts, transfers: transfers.toSpliced(index, 1, ...by) });
  const input = (
    label: string,
    value: string,
    onValue: (value: string) => void,
    hint?: string,
    more: object = {},
  ) => html`<${Field} label=${label} hint=${hint}>
    ${(described: object) => html`<input ...${described} ...${more} value=${value} onInput=${(event: Event) => onValue(inputOf(event))} />`}<//>`;
  return html`<section class="card preview" aria-labelledby="preview"><h2 id="preview">Preview</h2>
    <p class="muted">Shows what the rule would do with these facts. Nothing is changed or stored.</p>
    ${
      isLimit
        ? html`${transfers.map(
            (transfer, index) => html`<fieldset><legend>Transfer ${index + 1}</legend>
        ${input('Amount', transfer.amount, (amount) => replace(index, { ...transfer, amount }))}
        ${input('Made at', transfer.at, (at) => replace(index, { ...transfer, at }), 'your local time', LOCAL_TIME)}
        <button type="button" onClick=${() => replace(index)}>Remove transfer ${index + 1}</button></fieldset>`,
          )}
      <button type="button" onClick=${() => onFacts({ ...facts, transfers: [...transfers, { amount: '', at: localOf(Date.now()) }] })}>Add transfer</button>`
        : balancesOf(draft).map(({ key, field, networkCurrencyId }) => {
            const put = (value: string) => onFacts({ ...facts, values: { ...values, [key]: value } });
            return input(`Value of ${field}`, values[key] ?? '', put, `in the currency ${networkCurrencyId || 'without an id yet'}`);
          })
    }
    <${Outcome} preview=${preview} outcomes=${isLimit ? ['The transfers stay within the maximum', 'The transfers exceed the maximum'] : ['It would fire', 'It would not fire']} />
  </section>`;
}

function Outcome({ outcomes: [yes, no], preview: { data, failure, isLoading } }: { outcomes: [string, string]; preview: Asked<PreviewWalletRuleQuery> }) {
  if (failure) {
    const [issue] = failure.issues;
    const path = issue?.path.filter((part, index) => index > 0 || part !== 'rule') ?? [];
    return html`<p class="muted">Not evaluated: ${issue ? `${nameOf(path)}: ${issue.message}` : failure.message}</p>`;
  }
  if (!data) return html`<p class="muted">${isLoading ? 'Evaluating …' : 'Not evaluated: the rule is not complete yet.'}</p>`;
  const { fires, explanation } = data.previewWalletRule;
  return html`<p role="status"><${Badge} tone=${fires ? 'good' : 'bad'}>${fires ? yes : no}<//></p>
    <ul class="explained" aria-label="Why">${explanation.map(
      (one) => html`<li><b>${one.field} ${signOf(one.op)} ${one.expected}</b>
      <small> ${nameOf(pathOf(one.path).split('.'))}</small><${Verdict} of=${one} /></li>`,
    )}</ul>`;
}
