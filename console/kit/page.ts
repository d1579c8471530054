import type { ComponentChildren as Content } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, type Failure, failureOf, type Issue } from '../api.ts';
import type { TypedDocumentString } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { linkTo, visits } from '../router.ts';
import { viewer } from '../session.ts';
import { Icon, type IconName } from './icons.ts';
import { issueSentence } from './sentences.ts';
import { words } from './text.ts';

type PageInput = { title: string; trail?: Crumb[]; actions?: Content; children?: Content };

/** A view: its heading, which takes the focus when the view opens, and its content. */
export function Page({ title, trail = [], actions, children }: PageInput) {
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

export type Crumb = { text: string; link: string };

/** What a view shows while its data is on its way, has failed, or is there. */
export interface Asked<Result> {
  data: Result | undefined;
  failure: Failure | undefined;
  isLoading: boolean;
  /** Asks again, and keeps showing what is there. */
  reload(): void;
}

/** Asks for data, again with other variables or another turn, or when one goes to the place where one is. Without variables nothing is asked. */
export function useAsk<Result, Variables>(
  operation: TypedDocumentString<Result, Variables> | ((variables: Variables) => Promise<Result>),
  variables: Variables | undefined,
  turn = 0,
): Asked<Result> {
  const visit = visits.value;
  const [round, setRound] = useState(0);
  const [state, setState] = useState<{ key: string; visit: number; data?: Result; failure?: Failure }>({ key: '', visit });
  const key = JSON.stringify(variables) ?? 'nothing';
  useEffect(() => {
    if (variables === undefined) return;
    const asking = new AbortController();
    const asked = typeof operation === 'function' ? operation(variables) : ask(operation, variables, { signal: asking.signal });
    asked.then(
      (data) => !asking.signal.aborted && setState({ key, visit, data }),
      (error) => !asking.signal.aborted && setState((last) => ({ ...(last.key === key && last), key, visit, failure: failureOf(error) })),
    );
    return () => asking.abort();
  }, [operation, key, visit, round, turn]);
  const isCurrent = state.key === key;
  return {
    data: variables && state.data,
    failure: isCurrent ? state.failure : undefined,
    isLoading: variables !== undefined && (!isCurrent || state.visit !== visit || (!state.data && !state.failure)),
    reload: () => setRound((last) => last + 1),
  };
}

/** Asks again a while after each answer, for as long as something goes on. */
export function usePolling({ data, failure, reload }: Asked<unknown>, isOpen: boolean | undefined, afterMs = 1_000): void {
  useEffect(() => {
    const timer = isOpen ? setTimeout(reload, afterMs) : undefined;
    return () => clearTimeout(timer);
  }, [data, failure, isOpen]);
}

const TYPING_MS = 350;

/** Returns a value once it stays the same for a while; until then the last one that did. */
export function useSettled<Value>(value: Value): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(setSettled, TYPING_MS, value);
    return () => clearTimeout(timer);
  }, [JSON.stringify(value)]);
  return settled;
}

type FailureInput = { failure: Failure | undefined; issues?: readonly Issue[]; retry?: () => void };

/** The paths of the values about which a field says what is wrong, by the failure. */
const TOLD = new WeakMap<Failure, Set<string>>();

/** Notes that a field says what is wrong with its value, so that it is said once. */
export function noteTold(failure: Failure, path: string): void {
  TOLD.set(failure, (TOLD.get(failure) ?? new Set()).add(path));
}

/** An error, a button to try again, and a link to its audit record; nothing once all of its issues are corrected. */
export function FailureBox({ failure, issues = failure?.issues ?? [], retry }: FailureInput) {
  if (!failure || (failure.issues.length > 0 && issues.length === 0)) return null;
  const { message, permission, correlationId } = failure;
  const others = issues.filter(({ path }) => !TOLD.get(failure)?.has(path.join('.')));
  const mayLook = may('audit:read');
  return html`<div class="failure" role="alert">
    <p>${message}</p>
    ${permission !== undefined && html`<p>This needs the permission <code>${permission}</code>. Ask your administrator for it.</p>`}
    ${others.length > 0 && html`<ul>${others.map(({ path, message }) => html`<li>${issueSentence(words(path.at(-1) ?? ''), message)}</li>`)}</ul>`}
    ${
      (retry || correlationId !== undefined) &&
      html`<p class="actions">
      ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
      ${correlationId !== undefined && (mayLook ? html`<a href=${linkTo(['audit'], { correlationId })}>Show its audit record</a>` : html`<span>Correlation id: <code>${correlationId}</code></span>`)}
    </p>`
    }
  </div>`;
}

export function Skeleton() {
  return html`<div class="loading" role="status"><span class="hidden">Loading …</span>${Array.from({ length: 5 }, () => html`<i></i>`)}</div>`;
}

export function Answer<Result>({ asked, children }: { asked: Asked<Result>; children: (data: Result) => Content }) {
  const { data, failure, isLoading, reload } = asked;
  if (data === undefined && !failure) return html`<${Skeleton} />`;
  return html`<${FailureBox} failure=${failure} retry=${reload} />${data && html`<div aria-busy=${isLoading}>${children(data)}</div>`}`;
}

/** Shows the one thing that was asked for by its id, or says that there is none. */
export function Found<Thing>({ asked, noun, children }: { asked: Asked<object>; noun: string; children: (thing: Thing) => Content }) {
  const none = html`<${Empty} icon="search">There is no ${noun} with this id, or it belongs to another tenant.<//>`;
  return html`<${Answer} asked=${asked}>${(data: object) => Object.values(data).map((thing: Thing | null) => (thing ? children(thing) : none))}<//>`;
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

/** Names the permission to do something, where it is missing: `To create rules, you need …`. */
export function Needs({ permission, to }: { permission: string; to: string }) {
  if (may(permission)) return null;
  return html`<p class="muted">To ${to}, you need the permission <code>${permission}</code>. Ask your administrator for it.</p>`;
}

export function may(permission: string): boolean {
  return viewer.value?.permissions.includes(permission) ?? false;
}

/** Why there is nothing to list, and the button or link to do about it. */
export function Empty({ icon = 'empty', next, children }: { icon?: IconName; next?: Content; children?: Content }) {
  return html`<div class="empty"><${Icon} name=${icon} /><p>${children}</p>${next}</div>`;
}

/** The times in ms after which a change of the state is on the page: of a busy machine, late. Once something else has had the focus they are over. */
const RENDERED_MS = [50, 500, 2_000];

/** Gives the focus back to where it was, or where that is gone, to the heading of what is open; returns whether something else has it. */
export function restoreFocus(before: HTMLElement): boolean {
  if (document.activeElement === document.body) before.focus();
  if (document.activeElement === document.body) [...document.querySelectorAll<HTMLElement>('h1, dialog[open] > .head > h2')].at(-1)?.focus();
  return document.activeElement !== before && document.activeElement !== document.body;
}

/** Runs what a button does: once at a time, with its failure to show. */
export function useAction() {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const run = (act: () => Promise<unknown>) => {
    const before = document.activeElement as HTMLElement;
    let isElsewhere = false;
    setBusy(true);
    setFailure(undefined);
    return act()
      .catch((error: unknown) => setFailure(failureOf(error)))
      .finally(() => {
        setBusy(false);
        for (const ms of RENDERED_MS) setTimeout(() => (isElsewhere ||= restoreFocus(before)), ms);
      });
  };
  return { run, isBusy, failure, setFailure };
}
