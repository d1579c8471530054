import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Issue } from '../api.ts';
import { html } from '../html.ts';
import { Field, inputOf, issueAt } from '../kit/form.ts';
import { blank, type Condition, changed, conditionsOf, type GroupKind, group, groupOf, LOGIC, type Logic, OPERATORS, pathIn } from './rule-draft.ts';
import { type Explanation, Verdict } from './rule-preview.ts';

const MAX_DEPTH = 8;
const MAX_CONDITIONS = 64;
const KINDS: Readonly<Record<GroupKind, string>> = { and: 'All of these are true', or: 'Any of these is true', not: 'This is not true' };

interface Conditions {
  logic: Logic;
  issues: readonly Issue[];
  /** How each condition comes out, by its path. */
  explained: ReadonlyMap<string, Explanation>;
  /** What new conditions have as their currency. */
  currencyId: string;
  onChange(logic: Logic): void;
}

type Place = readonly number[];

/** The conditions of a rule, as a tree of groups that one can type on. */
export function ConditionTree({ logic: root, issues, explained, currencyId, onChange }: Conditions) {
  const wanted = useRef<Place | undefined>(undefined);
  useLayoutEffect(() => {
    if (!wanted.current) return;
    document.getElementById(idOf(wanted.current))?.querySelector<HTMLElement>('select, input')?.focus();
    wanted.current = undefined;
  }, [root]);
  const count = conditionsOf(root).length;
  const change = (at: Place, by: (node: Logic) => Logic | undefined, focus?: Place) => {
    wanted.current = focus;
    onChange(changed(root, at, by) ?? blank(currencyId));
  };
  const button = (text: string, isOff: boolean, act: () => void) => html`<button type="button" disabled=${isOff} onClick=${act}>${text}</button> `;
  const nodeOf = (logic: Logic, at: Place, path: string): unknown => {
    const isDeep = at.length + depthOf(logic) >= MAX_DEPTH;
    const wrap = (kind: GroupKind) => () => change(at, (node) => group(kind, [node]), at);
    return html`<fieldset class="node" id=${idOf(at)}>
      <legend>${'field' in logic ? 'Condition' : 'Group'} ${at.map((index) => index + 1).join('.')}</legend>
      ${'field' in logic ? leafOf(logic, at, path) : childrenOf(logic, at, path)}
      <p class="actions">${button('Group', isDeep, wrap('and'))} ${!('not' in logic) && button('Negate', isDeep, wrap('not'))}
        ${button('Remove', false, () => change(at, () => undefined, at.slice(0, -1)))}</p>
    </fieldset>`;
  };
  const childrenOf = (logic: Exclude<Logic, Condition>, at: Place, path: string) => {
    const { kind, children } = groupOf(logic);
    const turn = (event: Event) => change(at, () => group(inputOf(event) as GroupKind, children), at);
    const add = (text: string, node: Logic) =>
      button(text, count >= MAX_CONDITIONS || at.length + depthOf(node) >= MAX_DEPTH, () =>
        change(at, () => group(kind, [...children, node]), [...at, children.length]),
      );
    const options = Object.entries(KINDS).filter(([name]) => name !== 'not' || children.length === 1);
    return html`<${Field} label="Holds where">${(described: object) => select(described, kind, options, turn)}<//>
      ${children.map((child, index) => nodeOf(child, [...at, index], pathIn(path, kind, index)))}
      <p class="actions">${kind !== 'not' && [add('Add condition', blank(currencyId)), add('Add group', { and: [blank(currencyId)] })]}
        ${children.length === 1 && button('Ungroup', false, () => change(at, () => children[0], at))}</p>`;
  };
  const leafOf = (condition: Condition, at: Place, path: string) => {
    const put = (name: string) => (event: Event) => change(at, (node) => ({ ...(node as Condition), [name]: inputOf(event) }));
    const input = (name: keyof Condition, label: string, attributes: object) => html`<${Field} label=${label} issue=${issueAt(issues, `${path}.${name}`)}>
      ${(described: object) => html`<input ...${described} required ...${attributes} value=${condition[name]} onInput=${put(name)} />`}<//>`;
    return html`<div class="leaf">
        ${input('field', 'Field', { placeholder: 'target.balance' })}
        <${Field} label="Operator" issue=${issueAt(issues, `${path}.op`)}>
          ${(described: object) => select(described, condition.op, Object.entries(OPERATORS), put('op'))}<//>
        ${input('value', 'Value', { inputmode: 'decimal' })} ${input('network_currency_id', 'Currency id', { list: 'currencies' })}
      </div>
      <${Verdict} of=${explained.get(path)} />`;
  };
  return html`${nodeOf(root, [], LOGIC)}
    <p class="muted" role="status">${count} of at most ${MAX_CONDITIONS} conditions, ${depthOf(root)} of at most ${MAX_DEPTH} levels.</p>`;
}

function select(described: object, value: string, options: readonly [string, string][], onChange: (event: Event) => void) {
  return html`<select ...${described} value=${value} onChange=${onChange}>${options.map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select>`;
}

function depthOf(logic: Logic): number {
  return 1 + ('field' in logic ? 0 : Math.max(0, ...groupOf(logic).children.map(depthOf)));
}

function idOf(at: Place): string {
  return `condition-${at.join('-')}`;
}
