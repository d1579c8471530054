import type { ComponentChildren as Content } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { PagePartsFragment as PageInfo, TypedDocumentString } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { go } from '../router.ts';
import { Icon } from './icons.ts';
import { toast } from './overlay.ts';
import { Answer, Empty, useAsk } from './page.ts';

/** A column of a table: its heading, and the cell of a row. */
export interface Column<Row> {
  title: string;
  cell(row: Row): Content;
  isNumber?: boolean;
  /** Returns what the rows on the page can be sorted by. */
  sortBy?(row: Row): string | null | undefined;
}

/** Returns the cells of one row, by their headings, as `Facts`. */
export function factsOf<Row>(columns: readonly Column<Row>[], row: Row): [name: string, value: Content][] {
  return columns.map(({ title, cell }) => [title, cell(row)]);
}

interface TableInput<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** What tells a row from the others; by default its id. */
  keyOf?(row: Row): string | number;
  /** Where a click anywhere on a row leads; for the keyboard there is a link in a cell. */
  linkOf?(row: Row): string;
  /** What a click anywhere on a row does; for the keyboard there is a button in a cell. */
  onOpen?(row: Row): void;
  marked?(row: Row): boolean;
}

const idOf = (row: object) => (row as { id: string }).id;

/** A table, whose rows become cards where it is narrow. */
export function Table<Row extends object>({ label, columns, rows, keyOf = idOf, linkOf, onOpen, marked }: TableInput<Row>) {
  const clicked = (row: Row) => (event: MouseEvent) => {
    const isOwn = event.target instanceof Element && event.target.closest('a, button, input, select, label');
    if (isOwn || getSelection()?.type === 'Range') return;
    if (linkOf) go(linkOf(row));
    else onOpen?.(row);
  };
  const [order, setOrder] = useState({ title: '', isDown: false });
  const sortBy = columns.find(({ title }) => title === order.title)?.sortBy;
  const textOf = (row: Row) => sortBy?.(row) ?? '';
  const sorted = sortBy ? [...rows].sort((a, b) => textOf(a).localeCompare(textOf(b)) * (order.isDown ? -1 : 1)) : rows;
  const heading = ({ title, isNumber, sortBy }: Column<Row>) => {
    const isOrder = sortBy !== undefined && title === order.title;
    const sort = () => setOrder({ title, isDown: isOrder && !order.isDown });
    const aria = isOrder ? (order.isDown ? 'descending' : 'ascending') : undefined;
    return html`<th scope="col" class=${isNumber ? 'number' : ''} aria-sort=${aria}>${sortBy ? html`<button type="button" class="sort" onClick=${sort}>${title}</button>` : title}</th>`;
  };
  const isClickable = linkOf !== undefined || onOpen !== undefined;
  const line = (row: Row) =>
    html`<tr key=${keyOf(row)} class=${`${marked?.(row) ? 'marked' : ''} ${isClickable ? 'clickable' : ''}`} onClick=${isClickable ? clicked(row) : undefined}>
      ${columns.map(({ title, cell, isNumber }) => html`<td data-title=${title} class=${isNumber ? 'number' : ''}>${cell(row)}</td>`)}</tr>`;
  return html`<div class="table"><table aria-label=${label}>
    <thead><tr>${columns.map(heading)}</tr></thead>
    <tbody>${sorted.map(line)}</tbody>
  </table></div>`;
}

type Turn = { first?: number; after?: string; last?: number; before?: string };

/** The requested page of a list, and buttons for the other pages. */
export interface Pages {
  number: number;
  /** Whether the loaded rows belong to another page or list. */
  isLoading: boolean;
  turn(to: 'next' | 'previous', pageInfo: PageInfo): void;
}

const PAGE = 20;

/** Asks for a page of a list, again with each `round`; a change of `of`, such as its filter, leads back to the first. */
export function usePages<Result, Variables>(operation: TypedDocumentString<Result, Variables>, of: Omit<Variables, keyof Turn>, round = 0) {
  const key = JSON.stringify(of);
  const [at, setAt] = useState({ key, number: 1, turn: { first: PAGE } as Turn });
  const { number, turn } = at.key === key ? at : { number: 1, turn: { first: PAGE } };
  const asked = useAsk(operation, { ...of, ...turn } as Variables, round);
  const pages: Pages = {
    number,
    isLoading: asked.isLoading,
    turn: (to, { endCursor, startCursor }) => {
      if (to === 'next' && endCursor) setAt({ key, number: number + 1, turn: { first: PAGE, after: endCursor } });
      else if (to === 'previous' && startCursor && number > 2) setAt({ key, number: number - 1, turn: { last: PAGE, before: startCursor } });
      else setAt({ key, number: 1, turn: { first: PAGE } });
    },
  };
  return { ...asked, pages };
}

/** A page of a list, as the API returns it. */
export type ListOf<Row> = { totalCount: number; pageInfo: PageInfo; edges: readonly { node: Row }[] };

interface ListInput<Row> extends Omit<TableInput<Row>, 'rows'> {
  of: ListOf<Row>;
  pages: Pages;
  /** What the rows are called in a sentence; by default as in `label`. */
  noun?: string;
  /** Why there are no rows, and what to do about it: a sentence, or an `Empty`. */
  empty?: Content;
}

/** A page of a list: its rows, and for more than one page which of them are shown and the buttons that turn it. */
export function List<Row extends object>({ of, pages, label, noun = label.toLowerCase(), empty, ...table }: ListInput<Row>) {
  const { totalCount, pageInfo, edges } = of;
  const from = (pages.number - 1) * PAGE + 1;
  const range = edges.length === 0 ? '' : `${from} to ${from + edges.length - 1} of `;
  // A button that is disabled as a whole would lose the focus with each page.
  const button = (text: string, to: 'next' | 'previous', isThere: boolean) =>
    html`<button type="button" aria-disabled=${pages.isLoading || !isThere} onClick=${() => !pages.isLoading && isThere && pages.turn(to, pageInfo)}>${text}</button>`;
  const nothing = typeof empty === 'string' ? html`<${Empty}>${empty}<//>` : empty;
  const isPaged = pages.number > 1 || pageInfo.hasNextPage;
  return html`${edges.length === 0 ? nothing : html`<${Table} ...${table} label=${label} rows=${nodesOf(of)} />`}
    ${
      isPaged &&
      html`<nav class="pager" aria-label=${`Pages of ${noun}`}>
      <span role="status">${pages.isLoading ? 'Loading …' : `${range}${totalCount.toLocaleString('en')} ${noun}`}</span>
      ${button('Previous', 'previous', pages.number > 1)} ${button('Next', 'next', pageInfo.hasNextPage)}
    </nav>`
    }`;
}

type Listed<Row> = Readonly<Record<string, ListInput<Row>['of']>>;
type ListingInput<Row, Variables> = Omit<ListInput<Row>, 'of' | 'pages'> & {
  operation: TypedDocumentString<Listed<Row>, Variables>;
  variables?: Omit<Variables, keyof Turn>;
};

export function Listing<Row extends object, Variables>({ operation, variables = {} as Variables, ...list }: ListingInput<Row, Variables>) {
  const asked = usePages(operation, variables);
  return html`<${Answer} asked=${asked}>${(data: Listed<Row>) => Object.values(data).map((of) => html`<${List} ...${list} of=${of} pages=${asked.pages} />`)}<//>`;
}

export function nodesOf<Node>(connection: { edges: readonly { node: Node }[] }): Node[] {
  return connection.edges.map(({ node }) => node);
}

/** A filter in force, and what puts an end to it. */
export type Chip = readonly [text: string, remove: () => void];

/** The filters in force, each of which goes with a click. */
export function Chips({ says, chips }: { says: string; chips: readonly Chip[] }) {
  if (chips.length === 0) return null;
  const chip = ([text, remove]: Chip) =>
    html`<li key=${text}>${text}<button type="button" class="quiet" aria-label=${`Remove the filter: ${text}`} onClick=${remove}><${Icon} name="close" /></button></li>`;
  const clear = () => {
    for (const [, remove] of chips) remove();
  };
  const all = chips.length > 1 && html`<button type="button" class="plain" onClick=${clear}>Clear all</button>`;
  return html`<div class="chips"><span class="muted">${says}</span><ul aria-label="Filters in force">${chips.map(chip)}</ul>${all}</div>`;
}

type Tab = readonly [value: string, text: string, count?: number | string | undefined];
type TabsInput = { label: string; tabs: readonly Tab[]; value: string; onChange(value: string): void };

export function Tabs({ label, tabs, value, onChange }: TabsInput) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Where it is narrow, the tabs scroll sideways.
    const { offsetLeft = 0 } = box.current?.querySelector<HTMLElement>('[aria-pressed="true"]') ?? {};
    box.current?.scrollTo({ left: offsetLeft - box.current.offsetLeft });
  }, [value]);
  return html`<div class="tabs" role="group" aria-label=${label} ref=${box}>${tabs.map(
    ([tab, text, count]) =>
      html`<button type="button" aria-pressed=${tab === value} onClick=${() => onChange(tab)}>${text}${count !== undefined && html` <small>${count}</small>`}</button>`,
  )}</div>`;
}

export function saveFile(file: Blob, name: string): void {
  const href = URL.createObjectURL(file);
  Object.assign(document.createElement('a'), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
  toast(`Saved as ${name}.`);
}
