import { useEffect, useRef, useState } from 'preact/hooks';
import { type AuditFilter, AuditRecordsDocument, type AuditRecordsQuery } from './generated/graphql.ts';
import { html } from './html.ts';
import { go, linkTo, place } from './router.ts';
import { Answer, Badge, type Column, Dialog, Empty, Facts, Field, Id, inputOf, nodesOf, Page, Pager, Table, Time, useAsk, usePages } from './ui.ts';

type AuditRecord = AuditRecordsQuery['auditRecords']['edges'][number]['node'];
type Search = Record<'correlationId' | 'method' | 'path' | 'status' | 'since' | 'until', string>;

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'WS'];
/** The time in ms between looks for a record that is still on its way, and how often it is looked for. */
const LOOK_MS = 1_500;
const LOOKS = 6;

function searchOf(query: URLSearchParams): Search {
  const of = (name: keyof Search) => query.get(name)?.trim() ?? '';
  const [correlationId, method, path, status] = [of('correlationId'), of('method'), of('path'), of('status')];
  return { correlationId, method, path, status, since: of('since'), until: of('until') };
}

function filterOf({ correlationId, method, path, status, since, until }: Search): AuditFilter {
  const statusCode = /^\d{1,9}$/.test(status) ? Number(status) : null;
  const given = (text: string) => text || null;
  const texts = { correlationId: given(correlationId), method: given(method), path: given(path) };
  return { ...texts, statusCode, since: given(since), until: given(until) };
}

/** Returns a time in UTC as an input for local times has it; nothing for one that is none. */
function localOf(utc: string): string {
  const date = new Date(utc);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return Number.isNaN(local.getTime()) ? '' : local.toISOString().slice(0, 19);
}

/** Returns a duration to a tenth of a millisecond. */
function inMs(elapsed: number): string {
  return `${Number(elapsed).toFixed(1)} ms`;
}

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

/** The requests of the node and their responses: a search, whose values stand in the address. */
export function AuditPage() {
  const search = searchOf(place.value.query);
  return html`<${Page} title="Audit">
    <${SearchForm} search=${search} />
    <${Records} key=${JSON.stringify(search)} search=${search} />
  <//>`;
}

/** What a search has found; one request that its correlation id names, in full. */
function Records({ search }: { search: Search }) {
  const filter = filterOf(search);
  const pages = usePages(filter);
  const asked = useAsk(AuditRecordsDocument, { filter, ...pages.variables });
  const [open, setOpen] = useState<AuditRecord>();
  const path: Column<AuditRecord> = {
    title: 'Path',
    cell: (record) => html`<button type="button" class="plain" aria-haspopup="dialog" onClick=${() => setOpen(record)}>${record.path}</button>`,
  };
  return html`<${Answer} asked=${asked}>${({ auditRecords }: AuditRecordsQuery) => {
    const [record, second] = nodesOf(auditRecords);
    if (!record) return html`<${Nothing} isAwaited=${search.correlationId !== ''} reload=${asked.reload} />`;
    if (search.correlationId !== '' && !second) return html`<${RecordFacts} record=${record} />`;
    return html`<${Table} label="Audit records" columns=${[path, ...COLUMNS]} rows=${nodesOf(auditRecords)} keyOf=${({ id }: AuditRecord) => id} />
      <${Pager} connection=${auditRecords} pages=${pages} noun="records" />`;
  }}<//>
  ${
    open &&
    html`<${Dialog} title="Audit record" onClose=${() => setOpen(undefined)}><${RecordFacts} record=${open} />
    <p class="actions"><button type="button" onClick=${() => setOpen(undefined)}>Close</button></p><//>`
  }`;
}

function SearchForm({ search }: { search: Search }) {
  const key = JSON.stringify(search);
  const [typed, setTyped] = useState({ key, values: search });
  // Another address has other values, whatever was typed before.
  const given = typed.key === key ? typed.values : search;
  const setGiven = (values: Search) => setTyped({ key, values });
  const field = (name: keyof Search, label: string, hint: string, input: object) =>
    html`<${Field} label=${label} hint=${hint}>${(described: object) =>
      html`<input ...${described} ...${input} autocomplete="off" spellcheck="false" value=${given[name]} onInput=${(event: Event) => setGiven({ ...given, [name]: inputOf(event) })} />`}<//>`;
  const time = (name: 'since' | 'until', label: string) => {
    const hint = given[name] ? `${given[name].slice(0, 19).replace('T', ' ')} UTC` : 'Your local time; it is sent as UTC.';
    return html`<${Field} label=${label} hint=${hint}>${(described: object) =>
      html`<input ...${described} type="datetime-local" step="1" value=${localOf(given[name])} onChange=${(event: Event) => {
        const local = inputOf(event);
        setGiven({ ...given, [name]: local && new Date(local).toISOString() });
      }} />`}<//>`;
  };
  const methods = [...new Set([...METHODS, given.method])].filter(Boolean);
  return html`<form class="filters search" role="search" aria-label="Audit records" onSubmit=${(event: Event) => {
    event.preventDefault();
    go(linkTo(['audit'], given));
  }}>
    ${field('correlationId', 'Correlation id', 'The whole id: the X-Correlation-ID of the response.', { type: 'text' })}
    <${Field} label="Method" hint="WS is an operation on a socket.">${(
      described: object,
    ) => html`<select ...${described} value=${given.method} onChange=${(event: Event) => setGiven({ ...given, method: inputOf(event) })}>
      <option value="">All</option>${methods.map((method) => html`<option value=${method}>${method}</option>`)}</select>`}<//>
    ${field('path', 'Path', 'The whole path, without a query; a part of it finds nothing.', { type: 'text' })}
    ${field('status', 'Status code', 'Such as 404; 499: the caller left first.', { inputmode: 'numeric', pattern: '[0-9]{3}', title: 'Three digits' })}
    ${time('since', 'Received from')}
    ${time('until', 'Received before')}
    <p class="actions"><button type="submit" class="primary">Search</button><a href=${linkTo(['audit'])}>Clear</a></p>
  </form>`;
}

/** That nothing was found. A record that a correlation id names may still be on its way: it is looked for again. */
function Nothing({ isAwaited, reload }: { isAwaited: boolean; reload: () => void }) {
  const [looks, setLooks] = useState(0);
  const isLooking = isAwaited && looks < LOOKS;
  useEffect(() => {
    if (!isLooking) return;
    const timer = setTimeout(() => {
      setLooks(looks + 1);
      reload();
    }, LOOK_MS);
    return () => clearTimeout(timer);
  }, [looks, isLooking]);
  if (!isAwaited) return html`<${Empty}>No request matches all of this. Every value is compared as a whole: change or clear some.<//>`;
  if (isLooking)
    return html`<p class="loading" role="status">No record with this correlation id yet. Records take a few seconds to arrive: looking again …</p>`;
  return html`<${Empty}>No request of this node has this correlation id and matches the rest of the search. Check that the id is whole, or that its record is not older than audit records are kept. <button type="button" onClick=${() => setLooks(0)}>Look again</button><//>`;
}

/** All that is stored about one request. */
function RecordFacts({ record }: { record: AuditRecord }) {
  const { method, path, query, statusCode, headers, requestBody, responseBody } = record;
  const named = Object.entries((headers ?? {}) as Record<string, unknown>);
  return html`<p><${StatusCode} code=${statusCode} /> <code>${method} ${path}${query === null ? '' : `?${query}`}</code></p>
    <${Facts} of=${[
      ['Received', html`<${Time} at=${record.at} />`],
      ['Elapsed until the response was complete', inMs(record.elapsed)],
      ['Correlation id', html`<${Copied} text=${record.correlationId} />`],
      ['Client’s address', html`<code>${record.realIp}</code>`],
      ['Peer: the client or a proxy', html`<code>${record.remoteAddress}</code>`],
      ['Token', record.isApi ? 'of the client itself' : 'of a login, or none'],
      ['Id', html`<code>${record.id}</code>`],
    ]} />
    <p class="muted">Secrets and personal data are masked as <code>***</code> before they are stored.</p>
    <h3>Request headers</h3>
    ${
      named.length === 0
        ? html`<p class="muted">None.</p>`
        : html`<${Facts} of=${named.map(([name, value]) => [
            name === ':reason' ? 'Why it was refused (:reason)' : name,
            html`<code>${typeof value === 'string' ? value : JSON.stringify(value)}</code>`,
          ])} />`
    }
    <${Body} title="Request body" text=${requestBody} none="Not read, not kept, or empty." />
    <${Body} title="Response body" text=${responseBody} none="Not kept, or empty." />`;
}

function Body({ title, text, none }: { title: string; text: string | null; none: string }) {
  return html`<h3>${title}</h3>${text === null ? html`<p class="muted">${none}</p>` : html`<pre tabindex="0" role="region" aria-label=${title}>${indented(text)}</pre>`}`;
}

function Copied({ text }: { text: string }) {
  const code = useRef<HTMLElement>(null);
  const [told, setTold] = useState('');
  const copy = () => {
    getSelection()?.selectAllChildren(code.current ?? document.body);
    // Without a secure context there is no clipboard to write to.
    const written = navigator.clipboard?.writeText(text) ?? Promise.reject();
    written.then(
      () => setTold('Copied'),
      () => setTold('Selected: copy it with Ctrl+C'),
    );
  };
  return html`<code ref=${code}>${text}</code> <button type="button" onClick=${copy}>Copy</button> <small role="status">${told}</small>`;
}

/** Returns JSON with a member a line, each string and number as it was written; any other text as it is. */
function indented(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[{\]},:]|\s+/g, (token) => {
    if (token === '{' || token === '[') {
      depth += 1;
      return token + line();
    }
    if (token === '}' || token === ']') {
      depth -= 1;
      return line() + token;
    }
    if (token === ',') return token + line();
    return token === ':' ? ': ' : token.trim();
  });
}
