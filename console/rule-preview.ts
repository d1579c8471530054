import { useEffect, useState } from 'preact/hooks';
import { ask, type Failure, failureOf } from './api.ts';
import { PreviewWalletRuleDocument, type PreviewWalletRuleInput, type PreviewWalletRuleQuery } from './generated/graphql.ts';
import { html } from './html.ts';
import { conditionsOf, type Draft, LOGIC, nameOf, ownPart, ruleInput, signOf } from './rule-draft.ts';
import { Badge, Field, inputOf } from './ui.ts';

type Preview = PreviewWalletRuleQuery['previewWalletRule'];
export type Explanation = Preview['explanation'][number];

const TYPING_MS = 350;

/** What a rule is evaluated by: values of fields in currencies, by both; transfers; and a time, now if it is empty. */
export interface Facts {
  values: Readonly<Record<string, string>>;
  transfers: readonly { amount: string; at: string }[];
  at: string;
}

export const NO_FACTS: Facts = { values: {}, transfers: [], at: '' };

/** Returns the fields in currencies that the conditions name, each once. */
function balancesOf(draft: Draft): { key: string; field: string; networkCurrencyId: string }[] {
  if (ownPart(draft) !== 'autoTransferRule') return [];
  const named = conditionsOf(draft.logic).map(([, { field, network_currency_id: currency }]) => {
    const networkCurrencyId = currency.trim().toLowerCase();
    return { key: `${field} ${networkCurrencyId}`, field, networkCurrencyId };
  });
  return [...new Map(named.filter(({ field }) => field !== '').map((balance) => [balance.key, balance])).values()];
}

function instantOf(local: string): string | null {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

function previewInput(draft: Draft, { values, transfers, at }: Facts): PreviewWalletRuleInput {
  const rule = ruleInput(draft);
  const balances = balancesOf(draft).flatMap(({ key, field, networkCurrencyId }) => {
    const value = values[key]?.trim();
    return value ? [{ field, networkCurrencyId, value }] : [];
  });
  const made = transfers.flatMap(({ amount, at }) => {
    const time = instantOf(at);
    return time && amount ? [{ networkCurrencyId: rule.networkCurrencyId, amount: amount.trim(), at: time }] : [];
  });
  const isLimit = ownPart(draft) === 'permissionlessTransferLimitRule';
  return { rule, balances, transfers: isLimit ? made : null, at: instantOf(at) };
}

interface Told {
  preview?: Preview;
  failure?: Failure;
  /** Whether something is still empty, so that there is nothing to evaluate yet. */
  isIncomplete?: boolean;
}

/** Evaluates a draft once typing pauses. What came of another one is not told; an answer that comes too late is dropped. */
export function usePreview(draft: Draft, facts: Facts): Told {
  const input = previewInput(draft, facts);
  const key = JSON.stringify(input);
  // An empty text is nowhere valid in it; a quote inside of a text is escaped.
  const isIncomplete = key.includes(':""');
  const [state, setState] = useState<Told & { key: string }>({ key: '' });
  useEffect(() => {
    if (isIncomplete) return;
    const asking = new AbortController();
    const { signal } = asking;
    const timer = setTimeout(() => {
      ask(PreviewWalletRuleDocument, { input }, { signal }).then(
        ({ previewWalletRule: preview }) => !signal.aborted && setState({ key, preview }),
        (error) => !signal.aborted && setState({ key, failure: failureOf(error) }),
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      asking.abort();
    };
  }, [key]);
  return state.key === key ? state : { isIncomplete };
}

/** Returns a path of an explanation as issues have it: `auto_transfer_rule.rule_logic.and[1]`. */
function pathOf(path: string): string {
  return path.replace('auto_transfer_rule.rule_logic', LOGIC).replaceAll(/\[(\d+)\]/g, '.$1');
}

/** Returns explanations by the paths of their conditions. */
export function byPath({ preview }: Told): ReadonlyMap<string, Explanation> | undefined {
  return preview && new Map(preview.explanation.map((explanation) => [pathOf(explanation.path), explanation]));
}

/** How one condition comes out: whether it holds, by which value, and why not. */
export function Verdict({ of: explanation }: { of: Explanation | undefined }) {
  if (!explanation) return html`<p class="verdict muted">Not evaluated yet.</p>`;
  const { result, actual, expected, op, reason } = explanation;
  const compared = expected === null ? '' : `actual ${actual ?? 'unknown'}, expected ${signOf(op)} ${expected}`;
  const word = actual === null && expected !== null ? 'cannot be evaluated' : result ? 'holds' : 'does not hold';
  return html`<p class="verdict"><${Badge} tone=${result ? 'good' : 'bad'}>${word}<//> ${[compared, reason].filter(Boolean).join(': ')}</p>`;
}

interface PanelInput {
  draft: Draft;
  told: Told;
  facts: Facts;
  onFacts(facts: Facts): void;
}

/** The facts by which a draft is evaluated, and what comes of it. */
export function PreviewPanel({ draft, told, facts, onFacts }: PanelInput) {
  return html`<section class="card preview" aria-labelledby="preview"><h2 id="preview">Preview</h2>
    <p class="muted">What the rule would do with these facts. Nothing is changed or stored by it.</p>
    <${FactFields} ...${{ draft, facts, onFacts }} />
    <${Outcome} draft=${draft} told=${told} />
  </section>`;
}

function FactFields({ draft, facts, onFacts }: Omit<PanelInput, 'told'>) {
  const isLimit = ownPart(draft) === 'permissionlessTransferLimitRule';
  const { values, transfers, at } = facts;
  const put = (index: number, name: 'amount' | 'at') => (event: Event) =>
    onFacts({
      ...facts,
      transfers: transfers.map((transfer, n) => (n === index ? { ...transfer, [name]: inputOf(event) } : transfer)),
    });
  const input = (label: string, value: string, onInput: (event: Event) => void, hint?: string, type = 'text') =>
    html`<${Field} label=${label} hint=${hint}>${(described: object) => html`<input ...${described} type=${type} step="1" value=${value} onInput=${onInput} />`}<//>`;
  return html`
    ${balancesOf(draft).map(({ key, field, networkCurrencyId }) =>
      input(
        `Value of ${field}`,
        values[key] ?? '',
        (event) => onFacts({ ...facts, values: { ...values, [key]: inputOf(event) } }),
        `in the currency ${networkCurrencyId || 'of no id yet'}`,
      ),
    )}
    ${
      isLimit &&
      html`${transfers.map(
        (transfer, index) => html`<fieldset><legend>Transfer ${index + 1}</legend>
        ${input('Amount', transfer.amount, put(index, 'amount'))} ${input('Made at', transfer.at, put(index, 'at'), 'your local time', 'datetime-local')}
        <button type="button" onClick=${() => onFacts({ ...facts, transfers: transfers.filter((_, n) => n !== index) })}>Remove transfer ${index + 1}</button></fieldset>`,
      )}
      <button type="button" onClick=${() => onFacts({ ...facts, transfers: [...transfers, { amount: '', at: localNow() }] })}>Add transfer</button>`
    }
    ${isLimit && input('Evaluated at', at, (event) => onFacts({ ...facts, at: inputOf(event) }), 'your local time; now, if it is empty', 'datetime-local')}`;
}

function localNow(): string {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function Outcome({ draft, told: { preview, failure, isIncomplete } }: { draft: Draft; told: Told }) {
  if (failure) {
    const [issue] = failure.issues;
    const path = issue?.path.filter((part, index) => index > 0 || part !== 'rule') ?? [];
    return html`<p class="muted">Not evaluated: ${issue ? `${nameOf(path)}: ${issue.message}` : failure.message}</p>`;
  }
  if (!preview) return html`<p class="muted">${isIncomplete ? 'Not evaluated: the rule is not complete yet.' : 'Evaluating …'}</p>`;
  const isLimit = ownPart(draft) === 'permissionlessTransferLimitRule';
  const [yes, no] = isLimit ? ['The transfers stay within the maximum', 'They are not within it'] : ['It would fire', 'It would not fire'];
  return html`<p role="status"><${Badge} tone=${preview.fires ? 'good' : 'bad'}>${preview.fires ? yes : no}<//></p>
    <ul class="explained" aria-label="Why">${preview.explanation.map(
      (explanation) => html`<li><b>${explanation.field} ${signOf(explanation.op)} ${explanation.expected}</b>
        <small> ${nameOf(pathOf(explanation.path).split('.'))}</small><${Verdict} of=${explanation} /></li>`,
    )}</ul>`;
}
