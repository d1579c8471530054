import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Issue } from '../api.ts';
import { html } from '../html.ts';
import { Input, issueAt, Select } from '../kit/form.ts';
import { Picker, type Source } from '../kit/picker.ts';
import { words } from '../kit/text.ts';
import { blank, type Condition, changed, FIELDS, type GroupKind, group, groupOf, LOGIC, type Logic, OPERATORS, pathIn } from './rule-draft.ts';
import { type Explained, Verdict } from './rule-preview.ts';

const FIELD_OPTIONS = [...Object.entries(FIELDS).map(([field, name]) => [field, words(name)]), ['', 'Another field …']];
const OPERATOR_OPTIONS = Object.entries(OPERATORS).map(([op, [sign, meaning]]) => [op, `${sign} ${meaning}`]);
const KINDS: Readonly<Record<GroupKind, string>> = { and: 'All of these are true', or: 'Any of these is true', not: 'This is not true' };

type Place = readonly number[];
type TreeInput = { logic: Logic; issues: readonly Issue[]; explained: Explained; currencyId: string; currencies: Source; onChange(logic: Logic): void };
const idOf = (at: Place) => `condition-${at.join('-')}`;

/** The conditions of a rule, as a tree of groups that one can type on. */
export function ConditionTree({ logic: root, issues, explained, currencyId, currencies, onChange }: TreeInput) {
  const wanted = useRef<Place | undefined>(undefined);
  useLayoutEffect(() => {
    if (!wanted.current) return;
    document.getElementById(idOf(wanted.current))?.querySelector<HTMLElement>('select, input')?.focus();
    wanted.current = undefined;
  }, [root]);
  const change = (at: Place, by: (node: Logic) => Logic | undefined, focus?: Place) => {
    wanted.current = focus;
    onChange(changed(root, at, by) ?? blank(currencyId));
  };
  const button = (text: string, act: () => void) => html`<button type="button" onClick=${act}>${text}</button> `;
  const nodeOf = (logic: Logic, at: Place, path: string): unknown => {
    const isLeaf = 'field' in logic;
    const isOnly = isLeaf && at.length === 0;
    const wrap = () => change(at, (node) => group('and', [node]), at);
    const remove = () => change(at, () => undefined, at.slice(0, -1));
    const join = () => change(at, (node) => group('and', [node, blank(currencyId)]), [1]);
    return html`<fieldset class=${isOnly ? 'plain' : 'node'} id=${idOf(at)}>
      <legend class=${isOnly ? 'hidden' : ''}>${isLeaf ? 'Condition' : 'Group'} ${at.map((index) => index + 1).join('.')}</legend>
      ${isLeaf ? leafOf(logic, at, path) : childrenOf(logic, at, path)}
      <p class="actions">${!isLeaf && addTo(logic, at)}${isOnly ? button('Add condition', join) : [button('Wrap in group', wrap), button('Remove', remove)]}</p>
    </fieldset>`;
  };
  const childrenOf = (logic: Exclude<Logic, Condition>, at: Place, path: string) => {
    const { kind, children } = groupOf(logic);
    const turn = (to: string) => change(at, () => group(to as GroupKind, children), at);
    const options = Object.entries(KINDS).filter(([name]) => name !== 'not' || children.length === 1);
    return html`<${Select} label="Holds where" value=${kind} options=${options} onChange=${turn} />
      ${children.map((child, index) => nodeOf(child, [...at, index], pathIn(path, kind, index)))}`;
  };
  const addTo = (logic: Exclude<Logic, Condition>, at: Place) => {
    const { kind, children } = groupOf(logic);
    const add = (text: string, node: Logic) => button(text, () => change(at, () => group(kind, [...children, node]), [...at, children.length]));
    return html`${kind !== 'not' && [add('Add condition', blank(currencyId)), add('Add group', { and: [blank(currencyId)] })]}
      ${children.length === 1 && button('Ungroup', () => change(at, () => children[0], at))}`;
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
  return nodeOf(root, [], LOGIC);
}
