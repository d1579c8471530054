import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { ask, type Failure, failureOf, type Issue, type Link } from './api.ts';
import type { TypedDocumentString } from './generated/graphql.ts';
import { html } from './html.ts';
import { linkTo, visits } from './router.ts';
import { viewer } from './session.ts';

type Content = ComponentChildren;

/** A view: its heading, which takes the focus when the view opens, and its content. */
export function Page({ title, trail = [], actions, children }: { title: string; trail?: Crumb[]; actions?: Content; children?: Content }) {
  const heading = useRef<HTMLHeadingElement>(null);
  // Only once: a title that arrives with the data, or changes, must not take the focus from an input.
  useEffect(() => heading.current?.focus(), []);
  useEffect(() => {
    document.title = `${title} · Portcullis`;
  }, [title]);
  return html`<main id="content">
    ${trail.length > 0 && html`<nav aria-label="Breadcrumb" class="trail"><ol>${trail.map(({ text, link }) => html`<li><a href=${link}>${text}</a></li>`)}</ol></nav>`}
    <header class="head"><h1 tabindex="-1" ref=${heading}>${title}</h1><div class="actions">${actions}</div></header>
    ${children}
  </main>`;
}

/** A step of the way to a view. */
export type Crumb = { text: string; link: string };

/** What a view shows while its data is on its way, has failed, or is there. */
export interface Asked<Result> {
  data: Result | undefined;
  failure: Failure | undefined;
  isLoading: boolean;
  /** Asks again, and keeps showing what is there. */
  reload(): void;
}

/**
 * Asks for data, again whenever the variables change or one goes to the place where one is; an answer that comes too
 * late is dropped. Without variables nothing is asked.
 */
export function useAsk<Result, Variables>(operation: TypedDocumentString<Result, Variables>, variables: Variables | undefined): Asked<Result> {
  const visit = visits.value;
  const [round, setRound] = useState(0);
  const [state, setState] = useState<{ key: string; visit: number; data?: Result; failure?: Failure }>({ key: '', visit });
  const key = JSON.stringify(variables) ?? 'nothing';
  useEffect(() => {
    if (variables === undefined) return;
    const asking = new AbortController();
    ask(operation, variables, { signal: asking.signal }).then(
      (data) => !asking.signal.aborted && setState({ key, visit, data }),
      (error) => !asking.signal.aborted && setState((last) => ({ ...(last.key === key && last), key, visit, failure: failureOf(error) })),
    );
    return () => asking.abort();
  }, [operation, key, visit, round]);
  const isCurrent = state.key === key;
  return {
    data: variables && state.data,
    failure: isCurrent ? state.failure : undefined,
    isLoading: variables !== undefined && (!isCurrent || state.visit !== visit || (!state.data && !state.failure)),
    reload: () => setRound((last) => last + 1),
  };
}

type FailureInput = { failure: Failure | undefined; issues?: readonly Issue[]; retry?: () => void };

/**
 * An error, a button to try again, and a link to its audit record. It disappears once all of its issues are corrected.
 */
export function FailureBox({ failure, issues = failure?.issues ?? [], retry }: FailureInput) {
  if (!failure || (failure.issues.length > 0 && issues.length === 0)) return null;
  const { message, permission, correlationId } = failure;
  const mayLook = may('audit:read');
  return html`<div class="failure" role="alert">
    <p>${message}</p>
    ${permission !== undefined && html`<p>This needs the permission <code>${permission}</code>. Ask your administrator for it.</p>`}
    ${issues.length > 0 && html`<ul>${issues.map(({ path, message }) => html`<li><code>${path.join('.')}</code> ${message}</li>`)}</ul>`}
    <p class="actions">
      ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
      ${correlationId !== undefined && (mayLook ? html`<a href=${linkTo(['audit'], { correlationId })}>Show its audit record</a>` : html`<span>Correlation id: <code>${correlationId}</code></span>`)}
    </p>
  </div>`;
}

/**
 * Shows what a question has come to: that it loads, why it failed, `children` of the data, which stay where asking
 * again fails.
 */
export function Answer<Result>({ asked, children }: { asked: Asked<Result>; children: (data: Result) => Content }): VNode {
  const { data, failure, isLoading, reload } = asked;
  if (data === undefined && !failure) return html`<p class="loading" role="status">Loading …</p>` as VNode;
  return html`<${FailureBox} failure=${failure} retry=${reload} />${data && html`<div aria-busy=${isLoading}>${children(data)}</div>`}` as unknown as VNode;
}

/** Lets through who has the permissions, and names to others what is missing. */
export function Guarded({ title, needs, children }: { title: string; needs: readonly string[]; children?: Content }) {
  const missing = needs.filter((permission) => !may(permission));
  if (missing.length === 0) return children;
  return html`<${Page} title=${title}><div class="failure">
    <p>You may not see this: you do not have the permission ${missing.map((name) => html`<code>${name}</code> `)}.</p>
    <p>Ask your administrator for it, then sign in again.</p>
  </div><//>`;
}

/** Whether the person has a permission. */
export function may(permission: string): boolean {
  return viewer.value?.permissions.includes(permission) ?? false;
}

/** Why there is nothing to list, and what to do about it. */
export function Empty({ children }: { children?: Content }) {
  return html`<p class="empty">${children}</p>`;
}

/** A column of a table: its heading, and the cell of a row. */
export interface Column<Row> {
  title: string;
  cell(row: Row): Content;
  /** The cell is a number: it stands at the right. */
  isNumber?: boolean;
}

/** A table, whose rows become cards where it is narrow. */
export function Table<Row>({ label, columns, rows, keyOf, marked }: TableInput<Row>) {
  return html`<div class="table"><table aria-label=${label}>
    <thead><tr>${columns.map(({ title, isNumber }) => html`<th scope="col" class=${isNumber ? 'number' : ''}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (row) => html`<tr key=${keyOf(row)} class=${marked?.(row) ? 'marked' : ''}>
      ${columns.map(({ title, cell, isNumber }) => html`<td data-title=${title} class=${isNumber ? 'number' : ''}>${cell(row)}</td>`)}
    </tr>`,
    )}</tbody>
  </table></div>`;
}

interface TableInput<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf(row: Row): string | number;
  /** Whether a row has just changed. */
  marked?(row: Row): boolean;
}

type Turn = { first?: number; after?: string; last?: number; before?: string };

/** The requested page of a list, and buttons for the other pages. */
export interface Pages {
  number: number;
  /** Whether the loaded rows belong to another page or list. */
  isLoading: boolean;
  turn(to: 'next' | 'previous', pageInfo: PageInfo): void;
}

interface PageInfo {
  hasNextPage: boolean;
  hasPreviousPage: boolean;
  startCursor?: string | null | undefined;
  endCursor?: string | null | undefined;
}

const PAGE = 20;

/** Asks for a page of a list; a change of `of`, such as its filter, leads back to the first. */
export function usePages<Result, Variables>(operation: TypedDocumentString<Result, Variables>, of: Omit<Variables, keyof Turn>) {
  const key = JSON.stringify(of);
  const [at, setAt] = useState({ key, number: 1, turn: { first: PAGE } as Turn });
  const { number, turn } = at.key === key ? at : { number: 1, turn: { first: PAGE } };
  const asked = useAsk(operation, { ...of, ...turn } as Variables);
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

interface ListInput<Row> extends Omit<TableInput<Row>, 'rows'> {
  of: { totalCount: number; pageInfo: PageInfo; edges: readonly { node: Row }[] };
  pages: Pages;
  /** What the rows are called in a sentence; by default as in `label`. */
  noun?: string;
  /** Why there are no rows, and what to do about it. */
  empty?: Content;
}

/** A page of a list: its rows, how many there are and which of them are shown, and the buttons that turn the page. */
export function List<Row>({ of, pages, label, noun = label.toLowerCase(), empty, ...table }: ListInput<Row>) {
  const { totalCount, pageInfo, edges } = of;
  const from = (pages.number - 1) * PAGE + 1;
  const range = edges.length === 0 ? '' : `${from} to ${from + edges.length - 1} of `;
  // A button that is disabled as a whole would lose the focus with each page.
  const button = (text: string, to: 'next' | 'previous', isThere: boolean) =>
    html`<button type="button" disabled=${!isThere} aria-disabled=${pages.isLoading} onClick=${() => pages.isLoading || pages.turn(to, pageInfo)}>${text}</button>`;
  return html`${edges.length === 0 ? html`<${Empty}>${empty}<//>` : html`<${Table} ...${table} label=${label} rows=${nodesOf(of)} />`}
    <nav class="pager" aria-label=${`Pages of ${noun}`}>
      <span role="status">${pages.isLoading ? 'Loading …' : `${range}${totalCount} ${noun}`}</span>
      ${button('Previous', 'previous', pages.number > 1)} ${button('Next', 'next', pageInfo.hasNextPage)}
    </nav>`;
}

/** Returns the nodes of a list. */
export function nodesOf<Node>(connection: { edges: readonly { node: Node }[] }): Node[] {
  return connection.edges.map(({ node }) => node);
}

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** A time in the local time zone, followed by the time in UTC. */
export function Time({ at }: { at: string | null | undefined }) {
  const date = at ? new Date(at) : undefined;
  if (!date || Number.isNaN(date.getTime())) return html`<span class="muted">${at || '–'}</span>`;
  const utc = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  return html`<time datetime=${at} title=${at}>${LOCAL.format(date)} <small>${utc}</small></time>`;
}

/** The attributes of an input for a local time; its year has four digits. */
export const LOCAL_TIME = { type: 'datetime-local', step: 1, max: '9999-12-31T23:59:59' };

/** Returns a time as an input for local times has it; nothing for one that is none. */
export function localOf(at: string | number): string {
  const date = new Date(at);
  return utcOf(date.getTime() - date.getTimezoneOffset() * 60_000).slice(0, 19);
}

/** Returns a local time, such as the value of an input, in UTC; nothing if it is not a time. */
export function utcOf(at: string | number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

/** An id, shortened to its beginning, in full to who points at it or copies it. */
export function Id({ id, link }: { id: string | null | undefined; link?: string }) {
  if (!id) return html`<span class="muted">–</span>`;
  const shown = html`<code class="id" title=${id}>${id}</code>`;
  return link === undefined ? shown : html`<a href=${link}>${shown}</a>`;
}

/** Returns a name of the API as words: `TOKEN_TRANSACTIONS` as `Token transactions`. */
export function words(name: string): string {
  const spaced = name.replaceAll('_', ' ').toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** A word with a colour that says the same: `good`, `bad`, `busy`, or none. */
export function Badge({ tone = '', children }: { tone?: 'good' | 'bad' | 'busy' | ''; children?: Content }) {
  return html`<span class=${`badge ${tone}`}>${children}</span>`;
}

/** How a stream of events is. */
export function LinkBadge({ link }: { link: Link }) {
  if (link.state === 'waiting') return html`<${Badge} tone="bad">Connection lost. Next attempt at ${new Date(link.untilMs).toLocaleTimeString()}<//>`;
  return link.state === 'live' ? html`<${Badge} tone="good">Live<//>` : html`<${Badge} tone="busy">Connecting …<//>`;
}

/** Names and values of one thing. */
export function Facts({ of }: { of: readonly [name: string, value: Content][] }) {
  return html`<dl class="facts">${of.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A labelled input, with its hint and the server's error message. */
export function Field({
  label,
  hint,
  issue,
  children,
}: {
  label: string;
  hint?: string;
  issue?: string | undefined;
  children: (described: object) => Content;
}) {
  const id = useId();
  const isDescribed = issue !== undefined || hint !== undefined;
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children({ id, 'aria-describedby': isDescribed ? `${id}-told` : undefined, 'aria-invalid': issue !== undefined })}
    ${isDescribed && html`<small id=${`${id}-told`} class=${issue === undefined ? '' : 'issue'}>${issue ?? hint}</small>`}
  </div>`;
}

/** Returns what a failure says about the member of the input at a path; undefined if nothing. */
export function issueAt(issues: readonly Issue[], path: string): string | undefined {
  return issues.find((issue) => issue.path.join('.') === path)?.message;
}

/** A dialog above the view; Escape closes it, and the focus goes back to where it was. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children?: Content }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  const cancel = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${dialog} aria-labelledby=${id} onCancel=${cancel}><h2 id=${id}>${title}</h2>${children}</dialog>`;
}

/** Asks before something is done, and names what cannot be undone. A key that is held down does nothing of it. */
export function Confirm({ title, verb, keep = 'Keep it as it is', children, act, onClose }: ConfirmInput) {
  const { run, isBusy, failure } = useAction();
  const confirm = () => run(() => act().then(onClose));
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${children}
    <${FailureBox} failure=${failure} />
    <p class="actions"><button type="button" class="primary" disabled=${isBusy} onClick=${confirm}>${verb}</button><button type="button" autofocus onClick=${onClose}>${keep}</button></p>
  <//>`;
}

interface ConfirmInput {
  title: string;
  verb: string;
  /** What the button that does nothing says. */
  keep?: string;
  children?: Content;
  act(): Promise<unknown>;
  onClose(): void;
}

/** Runs what a button does: once at a time, with its failure to show. */
export function useAction() {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const run = useMemo(
    () => async (act: () => Promise<unknown>) => {
      setBusy(true);
      setFailure(undefined);
      try {
        await act();
      } catch (error) {
        setFailure(failureOf(error));
      } finally {
        setBusy(false);
      }
    },
    [],
  );
  return { run, isBusy, failure, setFailure };
}

/** Returns the value of the input that an event comes from. */
export function inputOf(event: Event): string {
  return (event.target as HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement).value;
}
