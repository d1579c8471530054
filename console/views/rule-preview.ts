import { useEffect, useState } from 'preact/hooks';
import {
  type PreviewFacts,
  PreviewWalletDocument,
  type PreviewWalletQuery,
  PreviewWalletRuleDocument,
  type PreviewWalletRuleQuery,
  WalletConditionsDocument,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Input, LOCAL_TIME, localOf, utcOf } from '../kit/form.ts';
import { nodesOf, Tabs } from '../kit/list.ts';
import { Answer, type Asked, useAsk } from '../kit/page.ts';
import { useName } from '../kit/picker.ts';
import { currencies } from '../kit/sources.ts';
import { Badge } from '../kit/text.ts';
import { conditionsOf, type Draft, fieldName, LOGIC, type Logic, nameOf, ownPart, ruleInput, signOf } from './rule-draft.ts';

export type Explanation = PreviewWalletRuleQuery['previewWalletRule']['explanation'][number];

const TYPING_MS = 350;

/** What a rule is evaluated by: values of fields in currencies, by both; and transfers. */
export interface Facts {
  values: Readonly<Record<string, string>>;
  transfers: readonly { amount: string; at: string }[];
}

type Need = { key: string; field: string; networkCurrencyId: string };

/** Returns the fields in currencies that conditions name, each once. */
function needsOf(logics: readonly Logic[]): Need[] {
  const named = logics
    .flatMap((logic) => conditionsOf(logic))
    .map(([, { field, network_currency_id: id }]) => ({ field, networkCurrencyId: id.trim().toLowerCase() }));
  const keyed = named.map((need) => ({ ...need, key: `${need.field} ${need.networkCurrencyId}` }));
  return [...new Map(keyed.filter(({ field }) => field !== '').map((need) => [need.key, need])).values()];
}

const logicsOf = (draft: Draft): Logic[] => (ownPart(draft) === 'autoTransferRule' ? [draft.logic] : []);

/** Returns the facts as the API takes them; what is not typed yet is left out. */
function factsInput(needs: readonly Need[], { values, transfers }: Facts, networkCurrencyId: string): PreviewFacts {
  const balances = needs.map(({ key, ...need }) => ({ ...need, value: values[key]?.trim() ?? '' }));
  const given = transfers.filter(({ amount, at }) => amount !== '' && utcOf(at) !== '');
  return {
    balances: balances.filter(({ value }) => value !== ''),
    transfers: given.map(({ amount, at }) => ({ networkCurrencyId, amount: amount.trim(), at: utcOf(at) })),
  };
}

function useSettled<Value>(value: Value): { value: Value; isSettled: boolean } {
  const key = JSON.stringify(value);
  const [settled, setSettled] = useState({ key, value });
  useEffect(() => {
    const timer = setTimeout(() => setSettled({ key, value }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return { value: settled.value, isSettled: settled.key === key };
}

/** Evaluates a complete draft when typing pauses. Returns nothing for the result of an earlier draft. */
export function usePreview(draft: Draft, facts: Facts): Asked<PreviewWalletRuleQuery> {
  const rule = ruleInput(draft);
  const { value: input, isSettled } = useSettled({ rule, ...factsInput(needsOf(logicsOf(draft)), facts, String(rule.networkCurrencyId)) });
  const isComplete = !JSON.stringify({ ...input.rule, name: 'any' }).includes(':""');
  const asked = useAsk(PreviewWalletRuleDocument, isComplete ? { input } : undefined);
  return isSettled && !asked.isLoading ? asked : { ...asked, isLoading: true, data: undefined, failure: undefined };
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
  return html`<p class="verdict"><${Badge} tone=${result ? 'good' : ''}>${word}<//> ${[compared, reason].filter(Boolean).join(': ')}</p>`;
}

interface PanelInput {
  walletId: string;
  ruleId: string | undefined;
  draft: Draft;
  preview: Asked<PreviewWalletRuleQuery>;
  facts: Facts;
  onFacts(facts: Facts): void;
}

/** The facts that a draft, or every rule of the wallet, is evaluated with, and the result. */
export function PreviewPanel({ walletId, ruleId, draft, preview, facts, onFacts }: PanelInput) {
  const [scope, setScope] = useState('rule');
  const isWhole = scope === 'wallet';
  const stored = useAsk(WalletConditionsDocument, isWhole ? { walletId } : undefined);
  const others = stored.data ? nodesOf(stored.data.walletRules).filter(({ status }) => status === 'ACTIVE') : [];
  const logics = [...logicsOf(draft), ...others.flatMap(({ autoTransferRule: own }) => (own ? [own.ruleLogic as Logic] : []))];
  const needs = needsOf(logics);
  const isLimit = ownPart(draft) === 'permissionlessTransferLimitRule';
  const { values, transfers } = facts;
  const replace = (index: number, ...by: Facts['transfers'][number][]) => onFacts({ ...facts, transfers: transfers.toSpliced(index, 1, ...by) });
  return html`<section class="card preview" aria-labelledby="preview"><h2 id="preview">Preview</h2>
    <p class="muted">Shows what would happen with these facts. Nothing is changed or stored.</p>
    <${Tabs} label="What is evaluated" value=${scope} onChange=${setScope} tabs=${[
      { value: 'rule', text: 'This rule' },
      { value: 'wallet', text: 'All rules of the wallet' },
    ]} />
    ${needs.map(({ key, field, networkCurrencyId }) => {
      const put = (value: string) => onFacts({ ...facts, values: { ...values, [key]: value } });
      return html`<${Balance} key=${key} ...${{ field, networkCurrencyId }} value=${values[key] ?? ''} onInput=${put} />`;
    })}
    ${
      (isLimit || isWhole) &&
      html`${transfers.map(
        (transfer, index) => html`<fieldset><legend>Transfer ${index + 1}</legend>
        <${Input} label="Amount" inputmode="decimal" value=${transfer.amount} onInput=${(amount: string) => replace(index, { ...transfer, amount })} />
        <${Input} label="Made at" hint="Your local time." ...${LOCAL_TIME} value=${transfer.at} onInput=${(at: string) => replace(index, { ...transfer, at })} />
        <p><button type="button" onClick=${() => replace(index)}>Remove transfer ${index + 1}</button></p></fieldset>`,
      )}
      <p><button type="button" onClick=${() => onFacts({ ...facts, transfers: [...transfers, { amount: '', at: localOf(Date.now()) }] })}>Add transfer</button></p>`
    }
    ${isWhole && html`<h3>This rule, as typed here</h3>`}
    <${Outcome} preview=${preview} isUntested=${!isLimit && needsOf([draft.logic]).every(({ key }) => !values[key])}
      outcomes=${isLimit ? ['The transfers stay within the maximum', 'The transfers exceed the maximum'] : ['It would fire', 'It would not fire']} />
    ${isWhole && html`<${WalletOutcome} ...${{ walletId, ruleId }} facts=${factsInput(needs, facts, draft.fields.networkCurrencyId ?? '')} />`}
  </section>`;
}

type BalanceInput = { field: string; networkCurrencyId: string; value: string; onInput(value: string): void };

function Balance({ field, networkCurrencyId, value, onInput }: BalanceInput) {
  const currency = useName(currencies, networkCurrencyId) ?? (networkCurrencyId || 'a currency that is not chosen yet');
  return html`<${Input} label=${`Value of ${fieldName(field)}`} hint=${`In ${currency}.`} inputmode="decimal" value=${value} onInput=${onInput} />`;
}

/** What the other active rules of the wallet would do, the highest priority first. */
function WalletOutcome({ walletId, ruleId, facts }: { walletId: string; ruleId: string | undefined; facts: PreviewFacts }) {
  const { value } = useSettled(facts);
  const asked = useAsk(PreviewWalletDocument, { walletId, facts: value });
  return html`<h3>Other active rules of the wallet</h3><${Answer} asked=${asked}>${({ previewWallet }: PreviewWalletQuery) => {
    const rules = previewWallet.rules.filter((rule) => rule.ruleId !== ruleId);
    if (rules.length === 0) return html`<p class="muted">The wallet has no other active rule.</p>`;
    return html`<ul class="explained" aria-label="Other active rules of the wallet">${rules.map(
      ({
        ruleId: id,
        name,
        fires,
        unmet,
      }) => html`<li key=${id}><b>${name || id}</b> <${Badge} tone=${fires ? 'good' : ''}>${fires ? 'would fire' : 'would not fire'}<//>
        ${unmet && html`${' '}<small>${fieldName(unmet.field)}</small><${Verdict} of=${unmet} />`}</li>`,
    )}</ul>`;
  }}<//>`;
}

type OutcomeInput = { outcomes: [string, string]; isUntested: boolean; preview: Asked<PreviewWalletRuleQuery> };

function Outcome({ outcomes: [yes, no], isUntested, preview: { data, failure, isLoading } }: OutcomeInput) {
  if (failure) {
    const [issue] = failure.issues;
    const path = issue?.path.filter((part, index) => index > 0 || part !== 'rule') ?? [];
    return html`<p class="muted">Not evaluated: ${issue ? `${nameOf(path)}: ${issue.message}` : failure.message}</p>`;
  }
  if (!data) return html`<p class="muted">${isLoading ? 'Evaluating …' : 'Not evaluated: the rule is not complete yet.'}</p>`;
  const { fires, explanation } = data.previewWalletRule;
  if (isUntested) return html`<p class="muted">Enter a balance to test the rule.</p>`;
  return html`<p role="status"><${Badge} tone=${fires ? 'good' : ''}>${fires ? yes : no}<//></p>
    <ul class="explained" aria-label="Why">${explanation.map(
      (one) => html`<li><b>${fieldName(one.field)} ${signOf(one.op)} ${one.expected}</b>
      <small> ${nameOf(pathOf(one.path).split('.'))}</small><${Verdict} of=${one} /></li>`,
    )}</ul>`;
}
