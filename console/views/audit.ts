import { useState } from 'preact/hooks';
import { download, mutate } from '../api.ts';
import type { ExportPartsFragment as AuditExport, AuditFilter, AuditRecordsQuery } from '../generated/graphql.ts';
import { AuditExportsDocument, AuditRecordsDocument, RequestAuditExportDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Check, Entry, Select } from '../kit/form.ts';
import { type Column, List, nodesOf, saveFile, Tabs, usePages } from '../kit/list.ts';
import { Sheet } from '../kit/overlay.ts';
import { Answer, type Asked, Empty, FailureBox, may, Page, useAction, useAsk, usePolling } from '../kit/page.ts';
import { Named, type Source, UUID, UUIDS, useFound, useOption } from '../kit/picker.ts';
import { asSentence } from '../kit/sentences.ts';
import { actors, rules, users, wallets } from '../kit/sources.ts';
import { Badge, Copy, CopyLink, counted, Facts, Id, Time, words } from '../kit/text.ts';
import { go, linkTo, place, startOf } from '../router.ts';
import { viewer } from '../session.ts';
import { viewAt } from '../views.ts';

type AuditRecord = AuditRecordsQuery['auditRecords']['edges'][number]['node'];
type Search = Record<(typeof NAMES)[number], string>;

const NAMES = [
  ...(['correlationId', 'correlationIds', 'path', 'operation', 'subject', 'clientId', 'status', 'range', 'since', 'until', 'own', 'changes'] as const),
  // The correlation id and the id of the record that is open, and whether exports are.
  ...(['attemptedUsername', 'record', 'exports'] as const),
];
const CLASSES = [['', 'All'], ...Object.entries({ 2: 'Succeeded', 4: 'Rejected (4xx)', 5: 'Failed (5xx)' })];
/** Quick ranges of time, in minutes. */
const RANGES = [['', 'Any time'], ...Object.entries({ 15: '15 min', 60: '1 h', 1440: '24 h', 10080: 'Last 7 days' })];

function searchOf(query: URLSearchParams): Search {
  return Object.fromEntries(NAMES.map((name) => [name, query.get(name)?.trim() ?? ''])) as Search;
}

function filterOf({ status, range, own, changes, correlationIds, record: _record, exports: _exports, ...texts }: Search): AuditFilter {
  const { path, since, ...exact } = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text || null]));
  return {
    ...exact,
    correlationIds: correlationIds ? correlationIds.split(',') : null,
    changesOnly: changes === 'only',
    pathPrefix: path ?? null,
    since: startOf(range) || (since ?? null),
    statusClass: /^[1-5]$/.test(status) ? Number(status) : null,
    hideReadsOf: own === 'shown' || texts.correlationId || texts.subject ? null : (viewer.value?.subject ?? null),
  };
}

/** Returns what a text in the search box names: a path, an operation of GraphQL, or a correlation id. */
function namedBy(text: string): Partial<Search> {
  const none = { correlationId: '', path: '', operation: '' };
  if (text.startsWith('/')) return { ...none, path: text };
  // An operation in words, as the list has it.
  const operation = /^[a-z]+(?: [a-z]+)+$/i.test(text) ? text.toLowerCase().replace(/ (.)/g, (_, letter) => letter.toUpperCase()) : text;
  return /^[a-z]+[A-Z][A-Za-z]*$|^[a-z]+$/.test(operation) ? { ...none, operation } : { ...none, correlationId: text };
}

const StatusCode = ({ code }: { code: number }) => html`<${Badge} tone=${code < 400 ? 'good' : code < 500 ? 'busy' : 'bad'}>${code}<//>`;

/** Who has made a request, with a link where one may open the person or client. */
function Who({ id, isLinked = false }: { id: string | null; isLinked?: boolean }) {
  const actor = useOption(actors, id ?? '');
  if (id === null) return html`<span class="muted">not signed in</span>`;
  return html`<${Id} id=${id} name=${actor?.text} link=${isLinked && actor ? linkTo([actor.isClient ? 'clients' : 'supervisors', id]) : undefined} />`;
}

/** What requests to these endpoints do. */
const DONE: Readonly<Record<string, string>> = {
  'POST /console/session': 'Sign in',
  'POST /console/session/renew': 'Continue the session',
  'DELETE /console/session': 'Sign out',
  'POST /v2/oauth/token': 'Get a token',
};

/** Returns what was done, in words: the fields of a GraphQL operation, or the method and the path of the endpoint. */
function operationWords({ operation, method, path, responseBody }: AuditRecord): string {
  const done = DONE[`${method} ${path}`];
  if (done !== undefined) return done;
  if (operation === null) return `${method} ${path}`;
  // The form that carries the file is not stored: the response says whether it only checked.
  if (operation === 'startUserMigration' && /"dryRun":\s*true/.test(responseBody ?? '')) return 'Check a user migration';
  return operation.startsWith('/') ? `${method} ${operation}` : operation.split(', ').map(words).join(', ');
}

/** Returns the ids that a request names, by their members: those of its path, or of its variables. */
function touched({ path, requestBody }: AuditRecord): Record<string, string> {
  const [first, second] = path.match(UUIDS) ?? [];
  if (first) return second ? { walletId: first, id: second } : { id: first };
  const variables = Object.entries((parsed(requestBody) as { variables?: object } | undefined)?.variables ?? {});
  return Object.fromEntries(variables.filter(([, value]) => typeof value === 'string' && UUID.test(value)));
}

/** What an operation is about, by its name: where its page is, and the names of such things. */
const ABOUT: readonly (readonly [operation: RegExp, view: string, source?: Source])[] = [
  [/rule/i, 'rules', rules],
  [/supervisor|sessions/i, 'supervisors', actors],
  [/client/i, 'clients', actors],
  [/migrat/i, 'migrations'],
  [/user/i, 'users', users],
  [/wallet|network/i, 'wallets', wallets],
  [/transaction/i, 'transactions'],
  [/account/i, 'accounts'],
  [/asset/i, 'assets'],
];

/** What a request names: by its name and with its page for who may open it, otherwise by its id. */
function Touched({ record }: { record: AuditRecord }) {
  const { id, walletId, ...others } = touched(record);
  const named = id ?? walletId ?? Object.values(others)[0];
  const [, path = '', source] = ABOUT.find(([operation]) => operation.test(record.operation ?? record.path)) ?? [];
  if (!named || !viewAt([path])?.needs.every(may)) return named && html`<${Id} id=${named} />`;
  const link = path !== 'rules' ? linkTo([path, named]) : id && walletId && linkTo(['wallets', walletId, 'rules', id]);
  return source ? html`<${Named} source=${source} id=${named} link=${link} />` : html`<${Id} id=${named} link=${link} />`;
}

export const show = () => html`<${AuditPage} />`;

/** The requests of the tenant and their responses: a search, whose values stand in the address. */
function AuditPage() {
  const { record, exports, ...search } = searchOf(place.value.query);
  const whole = { ...search, record, exports };
  const show = (opened: Partial<Search>) => go(linkTo(['audit'], { ...whole, ...opened }));
  const actions = html`<${CopyLink} />
    <button type="button" aria-haspopup="dialog" onClick=${() => show({ exports: 'shown' })}>Export</button>`;
  return html`<${Page} title="Audit" actions=${actions}>
    <${SearchForm} search=${whole} />
    <${Records} key=${JSON.stringify(search)} search=${whole} show=${show} />
    ${exports && html`<${Exports} search=${whole} onClose=${() => show({ exports: '' })} />`}
  <//>`;
}

/** What a search has found; one request that its correlation id names, in full. */
function Records({ search, show }: { search: Search; show: (opened: Partial<Search>) => void }) {
  const asked = usePages(AuditRecordsDocument, { filter: filterOf(search) });
  const setOpen = (record?: AuditRecord) => show({ record: record ? `${record.correlationId} ${record.id}` : '' });
  const opener = (record: AuditRecord) =>
    html`<button type="button" class="plain" aria-haspopup="dialog" onClick=${() => setOpen(record)}>${operationWords(record)}</button>`;
  const columns: readonly Column<AuditRecord>[] = [
    { title: 'Received', cell: ({ at }) => html`<${Time} at=${at} isAbsolute />` },
    { title: 'Who', cell: ({ subject }) => html`<${Who} id=${subject} />` },
    { title: 'Operation', cell: opener },
    { title: 'Touched', cell: (record) => html`<${Touched} record=${record} />` },
    { title: 'Client', cell: ({ clientId, subject }) => clientId && clientId !== subject && html`<${Named} source=${actors} id=${clientId} />` },
    { title: 'Status', cell: ({ statusCode }) => html`<${StatusCode} code=${statusCode} />` },
  ];
  return html`<${Answer} asked=${asked}>${({ auditRecords }: AuditRecordsQuery) => {
    const [record, second] = nodesOf(auditRecords);
    if (!record) return html`<${Nothing} search=${search} asked=${asked} />`;
    if (search.correlationId !== '' && !second) return Object.values(PARTS).map((part) => part(record));
    return html`<${List} label="Audit records" noun="records" of=${auditRecords} pages=${asked.pages} columns=${columns} onOpen=${setOpen} />`;
  }}<//>
  ${search.record && html`<${OpenRecord} key=${search.record} of=${search.record} listed=${asked.data} onClose=${() => setOpen()} />`}`;
}

/** The record that the address names: one of the list, or of another page or time. */
function OpenRecord({ of, listed, onClose }: { of: string; listed: AuditRecordsQuery | undefined; onClose: () => void }) {
  // A correlation id may have blanks, an id has none.
  const blank = of.lastIndexOf(' ');
  const [correlationId, id] = [of.slice(0, blank), of.slice(blank + 1)];
  const known = listed && nodesOf(listed.auditRecords).find((record) => record.id === id);
  const asked = useAsk(AuditRecordsDocument, listed && !known ? { filter: { correlationId } } : undefined);
  const found = known ?? (asked.data && nodesOf(asked.data.auditRecords).find((record) => record.id === id));
  if (found) return html`<${RecordSheet} record=${found} onClose=${onClose} />`;
  return (
    asked.data &&
    html`<${Sheet} title="Record" onClose=${onClose}><${Empty} icon="search">This record is not here any more, or belongs to another tenant.<//><//>`
  );
}

const TONES: Partial<Record<AuditExport['status'], 'good' | 'bad' | 'busy'>> = { WAITING: 'busy', RUNNING: 'busy', READY: 'good', FAILED: 'bad' };

/** Asks for an export of what the search finds, and shows the last ones: how far they are, and their files. */
function Exports({ search, onClose }: { search: Search; onClose: () => void }) {
  const asked = useAsk(AuditExportsDocument, { first: 5 });
  const { run, isBusy, failure } = useAction();
  const isOpen = asked.data && nodesOf(asked.data.auditExports).some(({ status }) => status === 'WAITING' || status === 'RUNNING');
  usePolling(asked, isOpen);
  // An export has all reads, also those that the list hides from who makes it.
  const filter = filterOf({ ...search, own: 'shown' });
  const request = () => mutate(RequestAuditExportDocument, { filter }).then(asked.reload);
  const save = ({ id, downloadPath }: AuditExport) =>
    run(() =>
      download(downloadPath ?? '')
        .then((file) => saveFile(file, `audit-export-${id}.zip`))
        .finally(asked.reload),
    );
  return html`<${Sheet} title="Export audit records" onClose=${onClose}>
    <p>The records of this search as CSV and JSON Lines in one archive, with their seals, by which others can verify them without this service. Your own reads are among them, also where the list hides them.</p>
    <${Chosen} of=${filter} />
    <p class="actions"><button type="button" class="primary" disabled=${isBusy || isOpen} onClick=${() => run(request)}>Export these records</button></p>
    <${FailureBox} failure=${failure} />
    <${Answer} asked=${asked}>${({ auditExports }: { auditExports: { edges: { node: AuditExport }[] } }) =>
      nodesOf(auditExports).map((one) => html`<${OneExport} key=${one.id} of=${one} isBusy=${isBusy} onSave=${() => save(one)} />`)}<//>
  <//>`;
}

/** The members of a filter, in words. */
function Chosen({ of }: { of: Record<string, unknown> }) {
  const chosen = Object.entries(of).filter(([, value]) => value && value !== 'false');
  const shown = chosen.map(([name, value]): [string, unknown] => {
    if (name === 'changesOnly') return ['Only', 'Changes'];
    if (name === 'since' || name === 'until') return [words(name), html`<${Time} at=${value} isAbsolute />`];
    if (name === 'subject' || name === 'clientId') return [name === 'subject' ? 'Who' : 'Client', html`<${Named} source=${actors} id=${value} />`];
    return name === 'node' ? ['', ''] : [words(name), String(value).replaceAll(',', ', ')];
  });
  return shown.length === 0 ? html`<p class="muted">All records of the tenant.</p>` : html`<${Facts} of=${shown} />`;
}

function OneExport({ of, isBusy, onSave }: { of: AuditExport; isBusy: boolean; onSave: () => void }) {
  const { id, status, asked, records, total, problems, reason, createdAt, expiresAt } = of;
  const isRunning = status === 'RUNNING' && total !== null;
  const isVerifying = isRunning && records === total;
  return html`<section class="card" aria-label=${`Export ${id}`}>
    <p><${Badge} tone=${TONES[status]}>${words(status)}<//> <${Time} at=${createdAt} isAbsolute /> <${Named} source=${actors} id=${of.requestedBy} /></p>
    <${Chosen} of=${asked} />
    ${isRunning && html`<progress aria-label="Records written" max=${Math.max(total, 1)} value=${records} />`}
    <p role="status">${isVerifying ? 'Verifying the period …' : total !== null && `${records.toLocaleString('en')} of ${counted(total, 'record')}`}</p>
    ${problems ? html`<p class="warning">${counted(problems, 'problem')} found in this period by the verification: ask the operator.</p>` : ''}
    ${reason && html`<p class="warning">It failed: ${asSentence(reason)}</p>`}
    ${
      status === 'READY' &&
      html`<p class="actions"><button type="button" class="primary" disabled=${isBusy} onClick=${onSave}>Download</button>
        <span class="muted">Until <${Time} at=${expiresAt} isAbsolute />. A copy is not reached by later erasures.</span></p>`
    }
  </section>`;
}

function RecordSheet({ record, onClose }: { record: AuditRecord; onClose: () => void }) {
  const [part, setPart] = useState('Summary');
  return html`<${Sheet} title=${operationWords(record)} onClose=${onClose}>
    <${Tabs} label="Part of the record" value=${part} onChange=${setPart} tabs=${Object.keys(PARTS).map((name) => [name, name])} />
    ${PARTS[part]?.(record)}
  <//>`;
}

/** The inputs of a search, which begin with the values of the address; each change is a search. */
function SearchForm({ search }: { search: Search }) {
  const { options: found } = useFound(actors, '');
  const { correlationId, correlationIds, path, operation, attemptedUsername, status, range, since, until, own, changes } = search;
  const set = (given: Partial<Search>) => go(linkTo(['audit'], { ...search, record: '', ...given }));
  const setOne = (name: keyof Search) => (value: string) => set({ [name]: value });
  const setTime = (name: keyof Search) => (value: string) => set({ [name]: value, range: '' });
  const choice = (name: 'subject' | 'clientId', label: string, any: string, isClient: boolean) => {
    const options = found.filter((one) => one.id === search[name] || (one.isClient ?? false) === isClient).map(({ id, text }) => [id, text]);
    return html`<${Select} label=${label} value=${search[name]} onChange=${setOne(name)} options=${[['', any], ...options]} />`;
  };
  return html`<form class="filters" role="search" aria-label="Audit records" onSubmit=${(event: Event) => event.preventDefault()}>
    <${Entry} label="Id, path or operation" placeholder="Correlation id, /v1/wallets, …" type="search"
      value=${correlationId || path || operation} onEnter=${(text: string) => set(namedBy(text))} />
    ${found.length > 0 && [choice('subject', 'Who', 'Anybody', false), choice('clientId', 'Client', 'Any client', true)]}
    <${Check} label="Hide my own reads" checked=${own !== 'shown'} onChange=${(isHidden: boolean) => set({ own: isHidden ? '' : 'shown' })} />
    <${Check} label="Changes only" checked=${changes === 'only'} onChange=${(isOnly: boolean) => set({ changes: isOnly ? 'only' : '' })} />
    ${correlationIds && html`<p class="actions">Requests that changed one rule <button type="button" onClick=${() => set({ correlationIds: '' })}>Show all</button></p>`}
    <p class="actions"><a href=${linkTo(['audit'])}>Clear</a></p>
  </form>
  <div class="actions"><${Tabs} label="Status" value=${status} onChange=${setOne('status')} tabs=${CLASSES} />
  <${Tabs} label="Time" value=${since || until ? 'other' : range} onChange=${(text: string) => set({ range: text, since: '', until: '' })} tabs=${RANGES} /></div>
  <details><summary>More filters${[since, until, attemptedUsername].some(Boolean) && ' (in use)'}</summary><div class="filters">
    <${Entry} label="Received from" isTime value=${since} onEnter=${setTime('since')} />
    <${Entry} label="Received before" isTime value=${until} onEnter=${setTime('until')} />
    <${Entry} label="Username of failed sign-ins" type="search" value=${attemptedUsername} onEnter=${setOne('attemptedUsername')} />
  </div></details>`;
}

/** That nothing was found. A record that a correlation id names may still be on its way: it is looked for again. */
function Nothing({ search: { correlationId, operation }, asked }: { search: Search; asked: Asked<unknown> }) {
  usePolling(asked, correlationId !== '', 2_000);
  if (correlationId)
    return html`<${Empty} icon="search">No request of this tenant with this correlation id matches. A new record takes a few seconds to arrive.<//>`;
  const asId = operation && html`<a class="button" href=${linkTo(['audit'], { correlationId: operation })}>Search for it as a correlation id</a>`;
  return html`<${Empty} icon="search" next=${asId}>No request matches.<//>`;
}

/** All that is stored about one request, in parts. */
const PARTS: Record<string, (record: AuditRecord) => unknown> = {
  Summary: summary,
  Request: request,
  Response: ({ responseBody }) => bodyOf('Response body', responseBody),
};

const headersOf = ({ headers }: AuditRecord) => Object.entries((headers ?? {}) as Record<string, unknown>);

function summary(record: AuditRecord) {
  const { method, path, query, statusCode, correlationId } = record;
  const { ':reason': reason, ':locked-until': lockedUntil } = Object.fromEntries(headersOf(record));
  return html`<p><${StatusCode} code=${statusCode} /> <code>${method} ${path}${query === null ? '' : `?${query}`}</code></p>
    ${reason && html`<p class="warning">${asSentence(words(String(reason)))}</p>`}
    <${Facts} of=${[
      ['Who', html`<${Who} id=${record.subject} isLinked />`],
      ['Client', record.clientId && html`<${Who} id=${record.clientId} isLinked />`],
      ['Locked until', lockedUntil && html`<${Time} at=${lockedUntil} isAbsolute />`],
      ['Signed in by', record.subject && (record.isApi ? 'API token' : 'Login')],
      ['Operation', operationWords(record)],
      ['Touched', Object.keys(touched(record)).length > 0 && html`<${Touched} record=${record} />`],
      ['Received', html`<${Time} at=${record.at} isAbsolute />`],
      ['Time until the response was complete', `${Number(record.elapsed).toFixed(1)} ms`],
      ['Client’s address', html`<code>${record.realIp}</code>`],
      ['Peer: the client or a proxy', html`<code>${record.remoteAddress}</code>`],
      ['Correlation id', html`<code>${correlationId}</code> <${Copy} text=${correlationId} />`],
      ['Id', html`<${Id} id=${record.id} />`],
    ]} />
    <p class="muted">Secrets and personal data are masked as <code>***</code> before they are stored.</p>`;
}

function request(record: AuditRecord) {
  const headers = headersOf(record).map(([name, value]) => [name, html`<code>${typeof value === 'string' ? value : JSON.stringify(value)}</code>`]);
  return html`${bodyOf('Request body', record.requestBody)}<h2>Request headers</h2><${Facts} of=${headers} />`;
}

function bodyOf(title: string, text: string | null) {
  return html`<h2>${title}</h2>
    ${text === null ? html`<p class="muted">Not stored, or empty.</p>` : html`<pre tabindex="0" role="region" aria-label=${title}>${indented(text)}</pre>`}`;
}

/** The greatest length of a body with indents; a deeply nested body would become a thousand times as long. */
const MAX_INDENTED = 1_000_000;

/** Returns JSON with a member a line and numbers as written; any other or longer text unchanged. */
function indented(text: string): string {
  const exact = (_key: string, value: unknown, context?: { source?: string }) => (typeof value === 'number' ? JSON.rawJSON(context?.source ?? '') : value);
  const lines = JSON.stringify(parsed(text, exact), null, 2) ?? text;
  return lines.length > MAX_INDENTED ? text : lines;
}

/** Returns the value of a JSON text; undefined where it is none. */
function parsed(text: string | null, reviver?: Parameters<typeof JSON.parse>[1]): unknown {
  try {
    return JSON.parse(text ?? '', reviver);
  } catch {
    return undefined;
  }
}
