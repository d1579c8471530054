import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Issue } from './api.ts';
import { html } from './html.ts';
import { blank, type Condition, changed, conditionsOf, type GroupKind, group, groupOf, LOGIC, type Logic, OPERATORS, pathIn } from './rule-draft.ts';
import { type Explanation, Verdict } from './rule-preview.ts';
import { Field, inputOf, issueAt } from './ui.ts';

const MAX_DEPTH = 8;
const MAX_CONDITIONS = 64;
const KINDS: Readonly<Record<GroupKind, string>> = {
  and: 'All of these hold',
  or: 'Any of these holds',
  not: 'This does not hold',
};

interface Tree {
  issues: readonly Issue[];
  /** How each condition comes out, by its path; undefined while that is not known. */
  explained: ReadonlyMap<string, Explanation> | undefined;
  /** What new conditions have as their currency. */
  currencyId: string;
  /** Whether there may be no further condition. */
  isFull: boolean;
  /** Puts another node at a place, and moves the focus to the node at `focus`. */
  change(at: readonly number[], by: (node: Logic) => Logic | undefined, focus?: readonly number[]): void;
}

/** The conditions of a rule, as a tree of groups that one can type on. */
export function ConditionTree({ logic, onChange, ...shown }: Omit<Tree, 'isFull' | 'change'> & { logic: Logic; onChange(logic: Logic): void }) {
  const wanted = useRef<readonly number[] | undefined>(undefined);
  useLayoutEffect(() => {
    if (!wanted.current) return;
    document.getElementById(idOf(wanted.current))?.querySelector<HTMLElement>('select, input')?.focus();
    wanted.current = undefined;
  }, [logic]);
  const count = conditionsOf(logic).length;
  const tree: Tree = {
    ...shown,
    isFull: count >= MAX_CONDITIONS,
    change: (at, by, focus) => {
      wanted.current = focus;
      onChange(changed(logic, at, by) ?? blank(shown.currencyId));
    },
  };
  return html`<${Node} tree=${tree} logic=${logic} at=${[]} path=${LOGIC} />
    <p class="muted" role="status">${count} of at most ${MAX_CONDITIONS} conditions, ${depthOf(logic)} of at most ${MAX_DEPTH} levels.</p>`;
}

interface Placed {
  tree: Tree;
  at: readonly number[];
  path: string;
}
/** A node with the buttons that every node has. */
type With<Members> = Placed & { common: unknown } & Members;

function depthOf(logic: Logic): number {
  return 1 + Math.max(0, ...(groupOf(logic)?.children ?? []).map(depthOf));
}

function idOf(at: readonly number[]): string {
  return `condition-${at.join('-')}`;
}

function Node({ tree, logic, at, path }: Placed & { logic: Logic }) {
  const { change } = tree;
  const given = groupOf(logic);
  const number = at.map((index) => index + 1).join('.');
  const isDeep = at.length + depthOf(logic) >= MAX_DEPTH;
  const wrap = (kind: GroupKind) => () => change(at, (node) => group(kind, [node]), at);
  const common = html`
    <button type="button" disabled=${isDeep} onClick=${wrap('and')}>Put into a group</button>
    ${given?.kind !== 'not' && html`<button type="button" disabled=${isDeep} onClick=${wrap('not')}>Negate</button>`}
    <button type="button" onClick=${() => change(at, () => undefined, at.slice(0, -1))}>Remove</button>`;
  return html`<fieldset class="node" id=${idOf(at)}>
    <legend>${given ? 'Group' : 'Condition'} ${number}</legend>
    ${given ? html`<${Group} ...${{ tree, at, path, common, ...given }} />` : html`<${Leaf} ...${{ tree, at, path, common }} condition=${logic} />`}
  </fieldset>`;
}

function Group({ tree, at, path, kind, children: nodes, common }: With<{ kind: GroupKind; children: readonly Logic[] }>) {
  const { change, currencyId, isFull } = tree;
  const isAtEnd = isFull || kind === 'not';
  const add = (node: Logic, depth: number) => html`<button type="button" disabled=${isAtEnd || at.length + depth >= MAX_DEPTH}
    onClick=${() => change(at, () => group(kind, [...nodes, node]), [...at, nodes.length])}>${depth === 1 ? 'Add condition' : 'Add group'}</button>`;
  return html`<${Field} label="Holds where">${(
    described: object,
  ) => html`<select ...${described} value=${kind} onChange=${(event: Event) => change(at, () => group(inputOf(event) as GroupKind, nodes), at)}>
      ${Object.entries(KINDS).map(([name, words]) => html`<option value=${name} disabled=${name === 'not' && nodes.length > 1 && kind !== 'not'}>${words}</option>`)}</select>`}<//>
    ${nodes.map((node, index) => html`<${Node} tree=${tree} logic=${node} at=${[...at, index]} path=${pathIn(path, kind, index)} />`)}
    <p class="actions">${kind !== 'not' && add(blank(currencyId), 1)} ${kind !== 'not' && add({ and: [blank(currencyId)] }, 2)}
      ${nodes.length === 1 && html`<button type="button" onClick=${() => change(at, () => nodes[0], at)}>Take out of the group</button>`} ${common}</p>`;
}

function Leaf({ tree, at, path, condition, common }: With<{ condition: Condition }>) {
  const { issues, explained, change } = tree;
  const put = (name: keyof Condition) => (event: Event) => change(at, (node) => ({ ...(node as Condition), [name]: inputOf(event) }));
  const input = (name: Exclude<keyof Condition, 'op'>, label: string, attributes: object) => html`<${Field} label=${label}
    issue=${issueAt(issues, `${path}.${name}`)}>${(described: object) => html`<input ...${described} required ...${attributes} value=${condition[name]} onInput=${put(name)} />`}<//>`;
  return html`<div class="leaf">
      ${input('field', 'Field', { placeholder: 'target.balance' })}
      <${Field} label="Operator" issue=${issueAt(issues, `${path}.op`)}>${(
        described: object,
      ) => html`<select ...${described} value=${condition.op} onChange=${put('op')}>
        ${Object.entries(OPERATORS).map(([op, words]) => html`<option value=${op}>${words}</option>`)}</select>`}<//>
      ${input('value', 'Value', { inputmode: 'decimal' })}
      ${input('network_currency_id', 'Currency id', { list: 'currencies' })}
    </div>
    <${Verdict} of=${explained?.get(path)} />
    <p class="actions">${common}</p>`;
}
