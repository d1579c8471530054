import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Issue } from '../api.ts';
import { html } from '../html.ts';
import { Input, issueAt, Select } from '../kit/form.ts';
import { Picker, type Source } from '../kit/picker.ts';
import { words } from '../kit/text.ts';
import { blank, type Condition, changed, conditionsOf, FIELDS, type GroupKind, group, groupOf, LOGIC, type Logic, OPERATORS, pathIn } from './rule-draft.ts';
import { type Explained, Verdict } from './rule-preview.ts';

const FIELD_OPTIONS = [...Object.entries(FIELDS).map(([field, name]) => [field, words(name)]), ['', 'Another field …']];
const OPERATOR_OPTIONS = Object.entries(OPERATORS).map(([op, [sign, meaning]]) => [op, `${sign} ${meaning}`]);
const MAX_DEPTH = 8;
const MAX_CONDITIONS = 64;
const KINDS: Readonly<Record<GroupKind, string>> = { and: 'All of these are true', or: 'Any of these is true', not: 'This is not true' };

type Place = readonly number[];
type TreeInput = { logic: Logic; issues: readonly Issue[]; explained: Explained; currencyId: string; currencies: Source; onChange(logic: Logic): void };
const depthOf = (logic: Logic): number => 1 + ('field' in logic ? 0 : Math.max(0, ...groupOf(logic).children.map(depthOf)));
const idOf = (at: Place) => `condition-${at.join('-')}`;

/** The conditions of a rule, as a tree of groups that one can type on. */
export function ConditionTree({ logic: root, issues, explained, currencyId, currencies, onChange }: TreeInput) {
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
    const turn = (to: string) => change(at, () => group(to as GroupKind, children), at);
    const add = (text: string, node: Logic) =>
      button(text, count >= MAX_CONDITIONS || at.length + depthOf(node) >= MAX_DEPTH, () =>
        change(at, () => group(kind, [...children, node]), [...at, children.length]),
      );
    const options = Object.entries(KINDS).filter(([name]) => name !== 'not' || children.length === 1);
    return html`<${Select} label="Holds where" value=${kind} options=${options} onChange=${turn} />
      ${children.map((child, index) => nodeOf(child, [...at, index], pathIn(path, kind, index)))}
      <p class="actions">${kind !== 'not' && [add('Add condition', blank(currencyId)), add('Add group', { and: [blank(currencyId)] })]}
        ${children.length === 1 && button('Ungroup', false, () => change(at, () => children[0], at))}</p>`;
  };
  const leafOf = (condition: Condition, at: Place, path: string) => {
    const put = (name: keyof Condition) => (to: string) => change(at, (node) => ({ ...(node as Condition), [name]: to }));
    const given = (name: keyof Condition) => ({ value: condition[name], issue: issueAt(issues, `${path}.${name}`), required: true });
    const { field } = condition;
    return html`<div class="leaf">
        <${Select} label="Field" value=${field in FIELDS ? field : ''} options=${FIELD_OPTIONS} onChange=${put('field')} />
        ${!(field in FIELDS) && html`<${Input} label="Name of the field" ...${given('field')} onInput=${put('field')} />`}
        <${Select} label="Operator" ...${given('op')} options=${OPERATOR_OPTIONS} onChange=${put('op')} />
        <${Input} label="Value" inputmode="decimal" ...${given('value')} onInput=${put('value')} />
        <${Picker} label="Currency" source=${currencies} ...${given('network_currency_id')} onChange=${put('network_currency_id')} />
      </div>
      <${Verdict} of=${explained.get(path)} />`;
  };
  return html`${nodeOf(root, [], LOGIC)}
    <p class="muted" role="status">${count} of at most ${MAX_CONDITIONS} conditions, ${depthOf(root)} of at most ${MAX_DEPTH} levels.</p>`;
}
