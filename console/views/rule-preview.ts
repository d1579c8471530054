import { useState } from 'preact/hooks';
import { PreviewWalletDocument, PreviewWalletRuleDocument, type PreviewWalletRuleQuery, WalletConditionsDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Input, LOCAL_TIME, localOf, utcOf } from '../kit/form.ts';
import { nodesOf, Tabs } from '../kit/list.ts';
import { Answer, type Asked, useAsk, useSettled } from '../kit/page.ts';
import { type Source, UUID, UUIDS, useName } from '../kit/picker.ts';
import { anything, currencies, users, wallets } from '../kit/sources.ts';
import { Badge, counted, shortened, words } from '../kit/text.ts';
import { conditionsOf, type Draft, fieldName, groupOf, LOGIC, type Logic, nameOf, OPERATORS, ownPart, ruleInput, signOf } from './rule-draft.ts';

type Explanation = PreviewWalletRuleQuery['previewWalletRule']['explanation'][number];
type Preview = Asked<PreviewWalletRuleQuery>;
export type Explained = ReadonlyMap<string, Explanation>;

const SCOPES = Object.entries({ rule: 'This rule', wallet: 'All rules of the wallet' });

/** What a rule is evaluated by: values of fields in currencies, by both; and transfers. */
export type Facts = { values: Readonly<Record<string, string>>; transfers: readonly { amount: string; at: string }[] };
type Need = { key: string; field: string; networkCurrencyId: string };

function needsOf(logics: readonly Logic[]): Need[] {
  const conditions = logics.flatMap((logic) => conditionsOf(logic)).filter(([, { field }]) => field !== '');
  const needs = conditions.map(([, { field, network_currency_id: id }]) => ({ field, networkCurrencyId: id.trim().toLowerCase() }));
  return [...new Map(needs.map((need) => [`${need.field} ${need.networkCurrencyId}`, need]))].map(([key, need]) => ({ key, ...need }));
}

const logicsOf = (draft: Draft): Logic[] => (ownPart(draft) === 'autoTransferRule' ? [draft.logic] : []);

/** Returns the facts as the API takes them; what is not typed yet is left out. */
function factsInput(needs: readonly Need[], { values, transfers }: Facts, networkCurrencyId: string) {
  const balances = needs.map(({ key, ...need }) => ({ ...need, value: values[key]?.trim() ?? '' }));
  const given = transfers.filter(({ amount, at }) => amount !== '' && utcOf(at) !== '');
  return {
    balances: balances.filter(({ value }) => value !== ''),
    transfers: given.map(({ amount, at }) => ({ networkCurrencyId, amount: amount.trim(), at: utcOf(at) })),
  };
}

/** Evaluates a complete draft when typing pauses. Returns nothing for the result of an earlier draft. */
export function usePreview(draft: Draft, facts: Facts): Preview {
  const rule = ruleInput(draft);
  const typed = { rule, ...factsInput(needsOf(logicsOf(draft)), facts, String(rule.networkCurrencyId)) };
  const input = useSettled(typed);
  const isComplete = !JSON.stringify({ ...input.rule, name: 'any' }).includes(':""');
  const asked = useAsk(PreviewWalletRuleDocument, isComplete ? { input } : undefined);
  return JSON.stringify(input) === JSON.stringify(typed) && !asked.isLoading ? asked : { ...asked, isLoading: true, data: undefined, failure: undefined };
}

/** Returns a path of an explanation as issues have it: `auto_transfer_rule.rule_logic.and[1]`. */
const pathOf = (path: string) => path.replace('auto_transfer_rule.rule_logic', LOGIC).replaceAll(/\[(\d+)\]/g, '.$1');

export function byPath({ data }: Preview): Explained {
  return new Map(data?.previewWalletRule.explanation.map((explanation) => [pathOf(explanation.path), explanation]));
}

/** Whether a condition has no result for want of a value. */
const isUnknown = (of: Pick<Explanation, 'actual' | 'expected'> | null | undefined) => of?.actual === null && of.expected !== null;

export function Verdict({ of: explanation }: { of: Explanation | undefined }) {
  if (!explanation) return html`<p class="verdict muted">Not evaluated yet.</p>`;
  const { field, result, actual, expected, op, reason } = explanation;
  if (isUnknown(explanation)) return html`<p class="verdict muted">Enter the ${fieldName(field)} to evaluate this.</p>`;
  const compared = expected === null ? '' : `${fieldName(field)} ${actual}, needed ${signOf(op)} ${expected}`;
  return html`<p class="verdict"><${Badge} tone=${result ? 'good' : ''}>${result ? 'is true' : 'is false'}<//> ${[compared, reason].filter(Boolean).join(': ')}</p>`;
}

type PanelInput = { walletId: string; ruleId: string | undefined; draft: Draft; preview: Preview; facts: Facts; onFacts(facts: Facts): void };

export function PreviewPanel({ walletId, ruleId, draft, preview, facts, onFacts }: PanelInput) {
  const [scope, setScope] = useState('rule');
  const isWhole = scope === 'wallet';
  const stored = useAsk(WalletConditionsDocument, isWhole ? { walletId } : undefined);
  const others = stored.data ? nodesOf(stored.data.walletRules).filter(({ status }) => status === 'ACTIVE') : [];
  const needs = needsOf([...logicsOf(draft), ...others.flatMap(({ autoTransferRule: own }) => (own ? [own.ruleLogic as Logic] : []))]);
  const isLimit = ownPart(draft) === 'permissionlessTransferLimitRule';
  const { values, transfers } = facts;
  const replace = (index: number, ...by: Facts['transfers'][number][]) => onFacts({ ...facts, transfers: transfers.toSpliced(index, 1, ...by) });
  return html`<section class="card preview" aria-labelledby="preview"><h2 id="preview">Preview</h2>
    <p class="muted">Shows what would happen with these facts. Nothing is changed or stored.</p>
    <${Tabs} label="What is evaluated" value=${scope} onChange=${setScope} tabs=${SCOPES} />
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
      effect=${!isLimit && html`: <${Transfer} ...${{ draft, walletId }} />`} outcomes=${isLimit ? ['The transfers stay within the maximum', 'The transfers exceed the maximum'] : ['It would fire', 'It would not fire']} />
    ${isWhole && html`<${WalletOutcome} ...${{ walletId, ruleId }} facts=${factsInput(needs, facts, draft.fields.networkCurrencyId ?? '')} />`}
  </section>`;
}

function Balance({ field, networkCurrencyId, ...given }: { field: string; networkCurrencyId: string; value: string; onInput(value: string): void }) {
  const currency = useName(currencies, networkCurrencyId) ?? (networkCurrencyId || 'a currency that is not chosen yet');
  return html`<${Input} label=${words(fieldName(field))} hint=${`In ${currency}.`} inputmode="decimal" ...${given} />`;
}

/** What the other active rules of the wallet would do, the highest priority first. */
function WalletOutcome({ walletId, ruleId, facts }: { walletId: string; ruleId: string | undefined; facts: ReturnType<typeof factsInput> }) {
  const asked = useAsk(PreviewWalletDocument, { walletId, facts: useSettled(facts) });
  return html`<h3>Other active rules of the wallet</h3><${Answer} asked=${asked}>${({ previewWallet }: NonNullable<typeof asked.data>) => {
    const rules = previewWallet.rules.filter((rule) => rule.ruleId !== ruleId);
    if (rules.length === 0) return html`<p class="muted">The wallet has no other active rule.</p>`;
    return html`<ul class="explained" aria-label="Other active rules of the wallet">${rules.map(
      ({ ruleId, name, fires, unmet }) =>
        html`<li key=${ruleId}><b>${name || ruleId}</b> <${Badge} tone=${fires ? 'good' : ''}>${fires ? 'would fire' : isUnknown(unmet) ? 'unknown' : 'would not fire'}<//>
        ${unmet && html`<${Verdict} of=${unmet} />`}</li>`,
    )}</ul>`;
  }}<//>`;
}

type OutcomeInput = { outcomes: [string, string]; effect: unknown; isUntested: boolean; preview: Preview };

function Outcome({ outcomes: [yes, no], effect, isUntested, preview }: OutcomeInput) {
  const { data, failure, isLoading } = preview;
  if (failure) {
    const [issue] = failure.issues;
    const path = issue?.path.filter((part, index) => index > 0 || part !== 'rule') ?? [];
    return html`<p class="muted">Not evaluated: ${issue ? `${nameOf(path)}: ${issue.message}` : failure.message}</p>`;
  }
  if (!data) return html`<p class="muted">${isLoading ? 'Evaluating …' : 'Not evaluated: the rule is not complete yet.'}</p>`;
  const { fires, explanation } = data.previewWalletRule;
  if (isUntested) return html`<p class="muted">Enter a balance to test the rule.</p>`;
  return html`<p role="status"><${Badge} tone=${fires ? 'good' : ''}>${fires ? yes : no}<//>${fires && effect}</p>
    <ul class="explained" aria-label="Why">${explanation.map((one) => html`<li><${Verdict} of=${one} /></li>`)}</ul>`;
}

function Name({ source, id = '' }: { source: Source; id: string | undefined }) {
  return useName(source, id) ?? (UUID.test(id) ? shortened(id) : '…');
}

/** A text with names in place of the ids in it. */
export function Naming({ text }: { text: string }) {
  return html`${text.split(UUIDS).map((part) => (UUID.test(part) ? html`<${Name} source=${anything} id=${part} />` : part))}`;
}

function Amount({ of, currencyId = '' }: { of: string | undefined; currencyId: string | undefined }) {
  const [symbol] = useName(currencies, currencyId)?.split(' · ') ?? [];
  return html`<b>${of || '…'}${symbol && ` ${symbol}`}</b>`;
}

/** Conditions in words. A group inside another one stands in parentheses. */
function Conditions({ logic, isInner = false }: { logic: Logic; isInner?: boolean }) {
  if ('field' in logic) {
    return html`the ${fieldName(logic.field) || '…'} ${OPERATORS[logic.op]?.[2]} <${Amount} of=${logic.value} currencyId=${logic.network_currency_id} />`;
  }
  const { kind, children } = groupOf(logic);
  if (kind === 'not') return html`it is not true that ${children.map((child) => html`<${Conditions} logic=${child} isInner />`)}`;
  const joined = children.map((child, index) => html`${index > 0 && ` ${kind} `}<${Conditions} logic=${child} isInner />`);
  return isInner && children.length > 1 ? html`(${joined})` : joined;
}

export function Sentence({ draft, walletId }: { draft: Draft; walletId: string }) {
  const { fields, logic, parts } = draft;
  const own = ownPart(draft);
  const at = (name: string, part: string = own) => fields[`${part}.${name}`] ?? '';
  const [count, least, most, userId = ''] = ['minUserCount', 'minPriority', 'maxPriority', 'mandatoryUserId'].map((name) => at(name, 'signAndApproveRule'));
  const amount = (of: string) => html`<${Amount} of=${of} currencyId=${fields.networkCurrencyId} />`;
  const approvals =
    parts.includes('signAndApproveRule') &&
    html`; ${counted(Number(count) || 1, 'approval')} needed${(least || most) && `, by users with priority ${least || 1} to ${most || 100}`}${
      userId && html`, one by <b><${Name} source=${users} id=${userId} /></b>`
    }`;
  if (own === 'permissionlessTransferLimitRule') {
    return html`Up to ${amount(at('maxAmount'))} may be transferred without approval
      within ${counted(Number(at('timePeriodValue')) || 1, at('timePeriod'))}${approvals}.`;
  }
  return html`When <${Conditions} logic=${logic} />, <${Transfer} ...${{ draft, walletId }} />${approvals}.`;
}

function Transfer({ draft: { fields }, walletId }: { draft: Draft; walletId: string }) {
  const at = (name: string) => fields[`autoTransferRule.${name}`] ?? '';
  return html`transfer <${Amount} of=${at('amount')} currencyId=${fields.networkCurrencyId} /> from <b><${Name} source=${wallets} id=${walletId} /></b>${' '}
    to <b><${Name} source=${wallets} id=${at('targetWalletId')} /></b>${at('type') === 'auto_with_approve' && ' once it is approved'}`;
}
