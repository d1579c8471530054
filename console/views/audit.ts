import { useEffect, useState } from 'preact/hooks';
import { type AuditFilter, AuditRecordsDocument, type AuditRecordsQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Field, LOCAL_TIME, localOf, utcOf } from '../kit/form.ts';
import { type Column, List, nodesOf, usePages } from '../kit/list.ts';
import { Dialog } from '../kit/overlay.ts';
import { Answer, Empty, Page } from '../kit/page.ts';
import { Badge, Facts, Id, Time } from '../kit/text.ts';
import { go, linkTo, place } from '../router.ts';

type AuditRecord = AuditRecordsQuery['auditRecords']['edges'][number]['node'];
type Search = Record<(typeof NAMES)[number], string>;

const NAMES = ['correlationId', 'method', 'path', 'status', 'since', 'until'] as const;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'WS'];
/** The time in ms between looks for a record that is still on its way, and how often it is looked for. */
const LOOK_MS = 1_500;
const LOOKS = 6;

function searchOf(query: URLSearchParams): Search {
  return Object.fromEntries(NAMES.map((name) => [name, query.get(name)?.trim() ?? ''])) as Search;
}

function filterOf({ status, ...texts }: Search): AuditFilter {
  const given = Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ''));
  return { ...given, statusCode: /^\d{1,9}$/.test(status) ? Number(status) : null };
}

const inMs = (elapsed: number) => `${Number(elapsed).toFixed(1)} ms`;

function StatusCode({ code }: { code: number }) {
  return html`<${Badge} tone=${code < 400 ? 'good' : code < 500 ? 'busy' : 'bad'}>${code}<//>`;
}

const COLUMNS: readonly Column<AuditRecord>[] = [
  { title: 'Method', cell: ({ method }) => method },
  { title: 'Status', cell: ({ statusCode }) => html`<${StatusCode} code=${statusCode} />` },
  { title: 'Elapsed', cell: ({ elapsed }) => inMs(elapsed), isNumber: true },
  { title: 'Received', cell: ({ at }) => html`<${Time} at=${at} />` },
  {
    title: 'Correlation id',
    cell: ({ correlationId }) => html`<${Id} id=${correlationId} link=${linkTo(['audit'], { correlationId })} />`,
  },
];

export function show() {
  return html`<${AuditPage} />`;
}

/** The requests of the node and their responses: a search, whose values stand in the address. */
function AuditPage() {
  const search = searchOf(place.value.query);
  return html`<${Page} title="Audit">
    <${SearchForm} search=${search} />
    <${Records} key=${JSON.stringify(search)} search=${search} />
  <//>`;
}

/** What a search has found; one request that its correlation id names, in full. */
function Records({ search }: { search: Search }) {
  const filter = filterOf(search);
  const asked = usePages(AuditRecordsDocument, { filter });
  const [open, setOpen] = useState<AuditRecord>();
  const path: Column<AuditRecord> = {
    title: 'Path',
    cell: (record) => html`<button type="button" class="plain" aria-haspopup="dialog" onClick=${() => setOpen(record)}>${record.path}</button>`,
  };
  return html`<${Answer} asked=${asked}>${({ auditRecords }: AuditRecordsQuery) => {
    const [record, second] = nodesOf(auditRecords);
    if (!record) return html`<${Nothing} isAwaited=${search.correlationId !== ''} reload=${asked.reload} />`;
    if (search.correlationId !== '' && !second) return html`<h2>Request</h2><${RecordFacts} record=${record} />`;
    return html`<${List} label="Audit records" noun="records" of=${auditRecords} pages=${asked.pages} columns=${[path, ...COLUMNS]}
      keyOf=${({ id }: AuditRecord) => id} />`;
  }}<//>
  ${
    open &&
    html`<${Dialog} title="Audit record" onClose=${() => setOpen(undefined)}><${RecordFacts} record=${open} />
    <p class="actions"><button type="button" onClick=${() => setOpen(undefined)}>Close</button></p><//>`
  }`;
}

/** The inputs of a search, which begin with the values of the address. */
function SearchForm({ search }: { search: Search }) {
  const submit = (event: Event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target as HTMLFormElement)) as Search;
    go(linkTo(['audit'], { ...given, since: utcOf(given.since), until: utcOf(given.until) }));
  };
  const clear = ({ currentTarget }: { currentTarget: HTMLElement }) => currentTarget.closest('form')?.reset();
  const input = (name: keyof Search, label: string, hint: string, more: object = {}) =>
    html`<${Field} label=${label} hint=${hint}>${(described: object) =>
      html`<input name=${name} value=${search[name]} autocomplete="off" spellcheck="false" ...${described} ...${more} />`}<//>`;
  const time = (name: 'since' | 'until', label: string) =>
    input(name, label, 'Your local time; it is sent as UTC.', { ...LOCAL_TIME, value: localOf(search[name]) });
  const methods = [...new Set(['', ...METHODS, search.method])];
  return html`<form class="filters search" role="search" aria-label="Audit records" onSubmit=${submit}>
    ${input('correlationId', 'Correlation id', 'The whole id: the X-Correlation-ID of the response.')}
    <${Field} label="Method" hint="WS is an operation over a WebSocket.">${(described: object) =>
      html`<select name="method" value=${search.method} ...${described}>${methods.map((method) => html`<option value=${method}>${method || 'All'}</option>`)}</select>`}<//>
    ${input('path', 'Path', 'The complete path, without the query string.')}
    ${input('status', 'Status code', 'Such as 404. 499 means that the caller disconnected first.', { inputmode: 'numeric', pattern: '[0-9]{3}', title: 'Three digits' })}
    ${time('since', 'Received from')}
    ${time('until', 'Received before')}
    <p class="actions"><button type="submit" class="primary">Search</button><a href=${linkTo(['audit'])} onClick=${clear}>Clear</a></p>
  </form>`;
}

/** That nothing was found. A record that a correlation id names may still be on its way: it is looked for again. */
function Nothing({ isAwaited, reload }: { isAwaited: boolean; reload: () => void }) {
  const [looks, setLooks] = useState(0);
  const isLooking = isAwaited && looks < LOOKS;
  useEffect(() => {
    const look = () => {
      setLooks(looks + 1);
      reload();
    };
    const timer = isLooking ? setTimeout(look, LOOK_MS) : undefined;
    return () => clearTimeout(timer);
  }, [looks]);
  if (!isAwaited) return html`<${Empty}>No request matches. Values must match exactly: change or clear some of them.<//>`;
  if (isLooking)
    return html`<p class="loading" role="status">No record with this correlation id yet. Records take a few seconds to arrive. Searching again …</p>`;
  return html`<${Empty}>No request of this tenant has this correlation id and matches the rest of the search, or its record was deleted.
    <button type="button" onClick=${() => setLooks(0)}>Search again</button><//>`;
}

/** All that is stored about one request. */
function RecordFacts({ record }: { record: AuditRecord }) {
  const { method, path, query, statusCode, headers, requestBody, responseBody } = record;
  const named = Object.entries((headers ?? {}) as Record<string, unknown>);
  return html`<p><${StatusCode} code=${statusCode} /> <code>${method} ${path}${query === null ? '' : `?${query}`}</code></p>
    <${Facts} of=${[
      ['Received', html`<${Time} at=${record.at} />`],
      ['Time until the response was complete', inMs(record.elapsed)],
      ['Correlation id', html`<${Copied} text=${record.correlationId} />`],
      ['Client’s address', html`<code>${record.realIp}</code>`],
      ['Peer: the client or a proxy', html`<code>${record.remoteAddress}</code>`],
      ['Token', record.isApi ? 'API token' : 'login token, or none'],
      ['Id', html`<code>${record.id}</code>`],
    ]} />
    <p class="muted">Secrets and personal data are masked as <code>***</code> before they are stored.</p>
    <h2>Request headers</h2>
    <${Facts} of=${named.map(([name, value]) => [
      name === ':reason' ? 'Why it was refused (:reason)' : name,
      html`<code>${typeof value === 'string' ? value : JSON.stringify(value)}</code>`,
    ])} />
    <${Body} title="Request body" text=${requestBody} />
    <${Body} title="Response body" text=${responseBody} />`;
}

function Body({ title, text }: { title: string; text: string | null }) {
  return html`<h2>${title}</h2>
    ${text === null ? html`<p class="muted">Not stored, or empty.</p>` : html`<pre tabindex="0" role="region" aria-label=${title}>${indented(text)}</pre>`}`;
}

function Copied({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true));
  return html`<code>${text}</code> ${isSecureContext && html`<button type="button" onClick=${copy}>Copy</button> <small role="status">${isCopied && 'Copied'}</small>`}`;
}

/** The greatest length of a body with indents; a deeply nested body would become a thousand times as long. */
const MAX_INDENTED = 1_000_000;

/** Returns JSON with a member a line and numbers as written; any other or longer text unchanged. */
function indented(text: string): string {
  const exact = (_key: string, value: unknown, context?: { source?: string }) => (typeof value === 'number' ? JSON.rawJSON(context?.source ?? '') : value);
  try {
    const lines = JSON.stringify(JSON.parse(text, exact), null, 2);
    return lines.length > MAX_INDENTED ? text : lines;
  } catch {
    return text;
  }
}
