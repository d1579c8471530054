import { useState } from 'preact/hooks';
import { PreviewWalletDocument, PreviewWalletRuleDocument, type PreviewWalletRuleQuery, WalletConditionsDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Input, LOCAL_TIME, localOf, utcOf } from '../kit/form.ts';
import { nodesOf, Tabs } from '../kit/list.ts';
import { Answer, type Asked, useAsk, useSettled } from '../kit/page.ts';
import { type Source, UUID, UUIDS, useName } from '../kit/picker.ts';
import { asSentence, issueSentence } from '../kit/sentences.ts';
import { anything, currencies, users, wallets } from '../kit/sources.ts';
import { Badge, counted, shortened, Time, words } from '../kit/text.ts';
import {
  approvalsIn,
  conditionsOf,
  type Draft,
  decimalFault,
  differing,
  faultsOf,
  fieldName,
  groupOf,
  idIn,
  LOGIC,
  type Logic,
  nameOf,
  OPERATORS,
  ownPart,
  ruleInput,
  signOf,
} from './rule-draft.ts';
import { ordered } from './rule-strength.ts';

type Explanation = PreviewWalletRuleQuery['previewWalletRule']['explanation'][number];
type Preview = Asked<PreviewWalletRuleQuery>;
export type Explained = ReadonlyMap<string, Explanation>;

const SCOPES = Object.entries({ rule: 'This rule', wallet: 'All rules of the wallet' });

/** What a rule is evaluated by: values of fields in currencies, by both; and transfers; and when they were typed. */
export type Facts = { values: Readonly<Record<string, string>>; transfers: readonly { amount: string; at: string }[]; at?: string };
type Need = { key: string; field: string; networkCurrencyId: string };

function needsOf(logics: readonly Logic[]): Need[] {
  const conditions = logics.flatMap((logic) => conditionsOf(logic)).filter(([, { field }]) => field !== '');
  const needs = conditions.map(([, { field, network_currency_id: id }]) => ({ field, networkCurrencyId: idIn(id) }));
  return [...new Map(needs.map((need) => [`${need.field} ${need.networkCurrencyId}`, need]))].map(([key, need]) => ({ key, ...need }));
}

const logicsOf = (draft: Draft): Logic[] => (ownPart(draft) === 'autoTransferRule' ? [draft.logic] : []);

/** Returns the facts as the API takes them; what is not typed yet is left out. */
function factsInput(needs: readonly Need[], { values, transfers }: Facts, networkCurrencyId: string) {
  const balances = needs.map(({ key, ...need }) => ({ ...need, value: values[key]?.trim() ?? '' }));
  const given = transfers.filter(({ amount, at }) => isNumber(amount) && utcOf(at) !== '');
  return {
    balances: balances.filter(({ value }) => isNumber(value)),
    transfers: given.map(({ amount, at }) => ({ networkCurrencyId, amount: amount.trim(), at: utcOf(at) })),
  };
}

const isNumber = (text: string) => decimalFault(text.trim()) === undefined;

/** Evaluates a complete draft when typing pauses. Returns nothing for the result of an earlier draft. */
export function usePreview(draft: Draft, facts: Facts, walletId: string): Preview {
  const rule = ruleInput(draft);
  const typed = { rule, walletId, ...factsInput(needsOf(logicsOf(draft)), facts, String(rule.networkCurrencyId)) };
  const { input, isComplete } = useSettled({ input: typed, isComplete: faultsOf(draft).length === 0 });
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

export function PreviewPanel({ walletId, ruleId, draft, preview, facts, onFacts: take }: PanelInput) {
  const [scope, setScope] = useState('rule');
  const isWhole = scope === 'wallet';
  const stored = useAsk(WalletConditionsDocument, isWhole ? { walletId } : undefined);
  const others = stored.data ? nodesOf(stored.data.walletRules).filter(({ status }) => status === 'ACTIVE') : [];
  const needs = needsOf([...logicsOf(draft), ...others.flatMap(({ autoTransferRule: own }) => (own ? [own.ruleLogic as Logic] : []))]);
  const isLimit = ownPart(draft) === 'permissionlessTransferLimitRule';
  const { values, transfers, at } = facts;
  const typed = Object.fromEntries(needs.map(({ key }) => [key, values[key] ?? '']));
  const onFacts = (typed: Facts) => take({ ...typed, at: new Date().toISOString() });
  const replace = (index: number, ...by: Facts['transfers'][number][]) => onFacts({ ...facts, transfers: transfers.toSpliced(index, 1, ...by) });
  return html`<section class="card preview" aria-labelledby="preview"><h2 id="preview">Preview</h2>
    <p class="muted">The real balances are not known here: type those to evaluate the rule with. Nothing is changed or stored.</p>
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
    <${Outcome} preview=${preview} draft=${draft} isUntested=${!isLimit && needsOf([draft.logic]).every(({ key }) => !values[key])} at=${at}
      effect=${!isLimit && html`<${Effect} ...${{ draft, walletId, values: typed }} />`} outcomes=${isLimit ? ['The transfers stay within the maximum', 'The transfers exceed the maximum'] : ['It would fire', 'It would not fire']} />
    ${isWhole && html`<${WalletOutcome} ...${{ walletId, ruleId }} facts=${factsInput(needs, facts, draft.fields.networkCurrencyId ?? '')} />`}
  </section>`;
}

function Balance({ field, networkCurrencyId, ...given }: { field: string; networkCurrencyId: string; value: string; onInput(value: string): void }) {
  const currency = useName(currencies, networkCurrencyId) ?? (networkCurrencyId || 'a currency that is not chosen yet');
  const issue = given.value === '' ? undefined : decimalFault(given.value.trim());
  return html`<${Input} label=${words(fieldName(field))} hint=${`In ${currency}.`} inputmode="decimal" issue=${issue} ...${given} />`;
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

type OutcomeInput = { outcomes: [string, string]; effect: unknown; isUntested: boolean; preview: Preview; draft: Draft; at: string | undefined };

function Outcome({ outcomes: [yes, no], effect, isUntested, preview, draft, at }: OutcomeInput) {
  const { data, failure, isLoading } = preview;
  const [fault] = faultsOf(draft);
  if (fault) return html`<p class="muted">Not evaluated yet. ${nameOf(fault.path)}: ${fault.message.toLowerCase()}.</p>`;
  if (failure) {
    const [issue] = failure.issues;
    const path = issue?.path.filter((part, index) => index > 0 || part !== 'rule') ?? [];
    return html`<p class="muted">Not evaluated. ${issue ? issueSentence(nameOf(path), issue.message) : failure.message}</p>`;
  }
  if (!data) return html`<p class="muted">${isLoading ? 'Evaluating …' : ''}</p>`;
  const { fires, explanation, warnings } = data.previewWalletRule;
  return html`<${Warnings} of=${warnings} />${
    isUntested
      ? html`<p class="muted">Enter a balance to test the rule.</p>`
      : html`<div role="status"><p><${Badge} tone=${fires ? 'good' : ''}>${fires ? yes : no}<//> ${at && html`<small>with what you typed, as of <${Time} at=${at} isAbsolute /></small>`}</p>
        ${fires && effect}</div>
    <ul class="explained" aria-label="Why">${explanation.map((one) => html`<li><${Verdict} of=${one} /></li>`)}</ul>`
  }`;
}

/** What a rule contains that can hardly be meant. */
export function Warnings({ of }: { of: readonly { message: string }[] }) {
  return of.map(({ message }) => html`<p class="warning">${asSentence(message)}</p>`);
}

/** What a rule does where it fires: the transfer, who must approve it, and whether the paying wallet is known to cover it. */
function Effect({ draft, walletId, values }: { draft: Draft; walletId: string; values: Facts['values'] }) {
  const { networkCurrencyId: currencyId = '', 'autoTransferRule.amount': amount = '' } = draft.fields;
  const sum = html`<${Amount} of=${amount} currencyId=${currencyId} />`;
  const held = ['balance.available', 'source.balance'].map((field) => values[`${field} ${idIn(currencyId)}`]).find(Boolean);
  const order = ordered(held ?? '', amount);
  const covered =
    order === undefined
      ? html`The balance of the paying wallet is not known: check that it covers ${sum}.`
      : order < 0 && html`The paying wallet would not cover it: ${sum} of <b>${held}</b>.`;
  return html`<p>It would <${Transfer} ...${{ draft, walletId }} />.</p>
    <p>${approvalsIn(draft) === 0 ? 'No approval' : counted(approvalsIn(draft), 'approval')} would be needed${needsWhom(draft)}.</p>
    ${covered && html`<p class=${order === undefined ? 'muted' : 'warning'}>${covered}</p>`}`;
}

const APPROVAL_PATHS = ['minUserCount', 'minPriority', 'maxPriority', 'mandatoryUserId'].map((name) => `signAndApproveRule.${name}`);

/** Says who must approve, behind the number of approvals. */
function needsWhom({ fields, parts }: Draft) {
  const [least, most, userId = ''] = ['minPriority', 'maxPriority', 'mandatoryUserId'].map((name) => fields[`signAndApproveRule.${name}`]);
  if (!parts.includes('signAndApproveRule')) return null;
  return html`${(least || most) && `, by users with priority ${least || 1} to ${most || 100}`}${userId && html`, one by <b><${Name} source=${users} id=${userId} /></b>`}`;
}

export function Name({ source, id = '' }: { source: Source; id: string | undefined }) {
  return useName(source, id) ?? (UUID.test(id) ? shortened(id) : '…');
}

/** A text with names in place of the ids in it. */
export function Naming({ text }: { text: string }) {
  return html`${text.split(UUIDS).map((part) => (UUID.test(part) ? html`<${Name} source=${anything} id=${part} />` : part))}`;
}

function Amount({ of, currencyId = '' }: { of: string | undefined; currencyId: string | undefined }) {
  const [symbol] = useName(currencies, currencyId)?.split(' · ') ?? [];
  return html`<b>${of && isNumber(of) ? of : '…'}${symbol && ` ${symbol}`}</b>`;
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

const marker =
  (differs: (path: string) => boolean) =>
  (content: unknown, ...paths: string[]) =>
    paths.some(differs) ? html`<mark>${content}</mark>` : content;

/** What a rule does, in words; what is different in another version is marked. */
export function Sentence({ draft, walletId, other }: { draft: Draft; walletId: string; other?: Draft | undefined }) {
  const { fields, logic } = draft;
  const own = ownPart(draft);
  const at = (name: string) => fields[`${own}.${name}`] ?? '';
  const others = new Set(other && differing(draft, other).map(({ path }) => path));
  const differs = (path: string) => others.has(path);
  const marked = marker(differs);
  const count = approvalsIn(draft);
  const lost = other && approvalsIn(other) > 0 && '; no approval needed';
  const approvals = marked(count > 0 ? html`; ${counted(count, 'approval')} needed${needsWhom(draft)}` : lost, ...APPROVAL_PATHS);
  if (own === 'permissionlessTransferLimitRule') {
    const time = counted(Number(at('timePeriodValue')) || 1, at('timePeriod'));
    const most = html`<${Amount} of=${at('maxAmount')} currencyId=${fields.networkCurrencyId} />`;
    return html`Up to ${marked(most, `${own}.maxAmount`, 'networkCurrencyId')} may be transferred without approval
      within ${marked(time, `${own}.timePeriod`, `${own}.timePeriodValue`)}${approvals}.`;
  }
  return html`When ${marked(html`<${Conditions} logic=${logic} />`, LOGIC)}, <${Transfer} ...${{ draft, walletId, differs }} />${approvals}.`;
}

function Transfer({ draft: { fields }, walletId, differs = () => false }: { draft: Draft; walletId: string; differs?(path: string): boolean }) {
  const marked = marker(differs);
  const [type, amount, target] = ['type', 'amount', 'targetWalletId'].map((name) => `autoTransferRule.${name}`) as [string, string, string];
  const sum = html`<${Amount} of=${fields[amount]} currencyId=${fields.networkCurrencyId} />`;
  const when = fields[type] === 'auto_with_approve' ? ' once it is approved' : differs(type) && ' at once';
  return html`transfer ${marked(sum, amount, 'networkCurrencyId')} from <b><${Name} source=${wallets} id=${walletId} /></b>${' '}
    to ${marked(html`<b><${Name} source=${wallets} id=${fields[target]} /></b>`, target)}${marked(when, type)}`;
}

/** Both sentences of a rule side by side, each with what differs from the other marked. */
export function Both({ walletId, sides }: { walletId: string; sides: readonly (readonly [title: string, draft: Draft])[] }) {
  return html`<div class="both">${sides.map(
    ([title, draft], index) => html`<section><small>${title}</small><p><${Sentence} ...${{ draft, walletId }} other=${sides[1 - index]?.[1]} /></p></section>`,
  )}</div>`;
}

/** A member of a rule in words, with names in place of ids. */
export function Member({ path, draft, text }: { path: string; draft: Draft; text: string | undefined }) {
  if (text === undefined) return '–';
  return path === LOGIC ? html`<${Conditions} logic=${draft.logic} />` : html`<${Naming} text=${text} />`;
}
