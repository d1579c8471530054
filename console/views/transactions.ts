import { useRef, useState } from 'preact/hooks';
import { ask, type Failure, failureOf } from '../api.ts';
import { NetworksDocument, TransactionCountsDocument, TransactionDocument, type TransactionQuery, TransactionsDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Entry, Input, Select, utcOf } from '../kit/form.ts';
import { Icon } from '../kit/icons.ts';
import { type Chip, Chips, type Column, nodesOf, saveFile, Table, Tabs } from '../kit/list.ts';
import { Empty, FailureBox, Found, may, Page, Skeleton, useAsk, useSettled } from '../kit/page.ts';
import { absolute, Badge, counted, Explorer, Facts, Id, LinkBadge, lasting, Time, words } from '../kit/text.ts';
import {
  collectionWords,
  countOf,
  filtersOf,
  longest,
  midnight,
  STUCK,
  skipsReceipt,
  stuckSince,
  type Transaction,
  typeWords,
  useUpdates,
  waitsFor,
} from '../kit/transactions.ts';
import { onSignOut } from '../remembered.ts';
import { linkTo, place, setQuery } from '../router.ts';
import { recordOf } from './csv.ts';

type Filter = Parameters<typeof filtersOf>[0];
type Status = NonNullable<Transaction['status']>;

const COLLECTIONS: readonly Transaction['collection'][] = [
  ...(['TOKEN_TRANSACTIONS', 'NODE_TRANSACTIONS', 'CURRENCY_TOKEN_TRANSACTIONS'] as const),
  ...(['USER_TRANSACTIONS', 'SECONDARY_MARKET_TRANSACTIONS', 'OTC_TRANSACTIONS'] as const),
];

/** What each status is called, and whether that is good. */
const STATUSES: Record<Status, readonly [text: string, tone: 'good' | 'bad' | 'busy']> = {
  STARTED: ['Started', 'busy'],
  IN_PROGRESS: ['In progress', 'busy'],
  PENDING_RECEIPT: ['Waiting for a receipt', 'busy'],
  DONE: ['Done', 'good'],
  ERROR: ['Failed', 'bad'],
};

/** The statuses after which another one is expected. */
const OPEN = ['STARTED', 'IN_PROGRESS', 'PENDING_RECEIPT'] as const satisfies readonly Status[];

function StatusBadge({ status }: { status: Status | null | undefined }) {
  const [text, tone] = status ? STATUSES[status] : ['Not started', ''];
  return html`<${Badge} tone=${tone}>${text}<//>`;
}

/** The parts of the list, which are its tabs. */
type Listed = '' | 'STUCK' | Status | 'CONFLICT' | 'FLAGGED';
const PARTS: readonly (readonly [part: Listed, text: string])[] = [
  ['', 'All'],
  ...OPEN.map((status) => [status, STATUSES[status][0]] as const),
  ['STUCK', 'Stuck over an hour'],
  ['ERROR', 'Failed'],
  ['DONE', 'Done'],
  ['CONFLICT', 'Conflicts'],
  ['FLAGGED', 'Unknown types'],
];
const countedIn = (part: Listed) => (part === 'STUCK' ? STUCK : part === '' ? [] : [part]);

/** Whether a transaction that has just changed is in a part. */
function isIn(part: Listed, { status, conflict, typeFlagged }: Transaction): boolean {
  return part === '' || part === status || (part === 'CONFLICT' && conflict) || (part === 'FLAGGED' && typeFlagged);
}

const isFinal = (status: Status | null | undefined) => status === 'DONE' || status === 'ERROR';
const typeCell = (row: Transaction) => html`${typeWords(row)} ${row.typeFlagged && html`<${Badge} tone="bad">unknown type<//>`}`;
const statusCell = (row: Transaction) => {
  const since = stuckSince(row);
  return html`<span class="badges"><${StatusBadge} status=${row.status} /> ${row.conflict && html`<${Badge} tone="bad">Conflict<//>`}
    ${since && html`<${Badge} tone="busy">Stuck for ${lasting(since, new Date().toISOString())}<//>`}</span>`;
};

function filterBy(query: URLSearchParams): Filter {
  const type = query.get('type') ?? '';
  return {
    collection: COLLECTIONS.find((known) => known === query.get('collection')) ?? null,
    type: /^\d{1,9}$/.test(type) ? Number(type) : null,
    search: query.get('search')?.trim() || null,
    error: query.get('error') || null,
    updatedSince: utcOf(query.get('since') ?? '') || null,
    updatedUntil: utcOf(query.get('until') ?? '') || null,
  };
}

const SHOWN = 50;
/** The greatest number of rows that are kept, so that a page that is open for days stays small. */
const KEPT = 500;

interface Live {
  key: string;
  rows: readonly Transaction[];
  /** Whether it has been read. */
  isRead?: boolean;
  /** The cursor before the oldest row; undefined where there is none older, null where older ones are not listed. */
  older?: string | null | undefined;
  failure?: Failure | undefined;
  latest?: string;
}

/** Returns rows with an update in them, if it is the newer one: its transaction on top, or gone if it has left the part. */
function updated(rows: readonly Transaction[], update: Transaction, part: Listed): readonly Transaction[] {
  if (rows.some(({ id, updatedAt }) => id === update.id && (updatedAt ?? '') > (update.updatedAt ?? ''))) return rows;
  const others = rows.filter(({ id }) => id !== update.id);
  return isIn(part, update) ? [update, ...others] : others;
}

/** Reads a page of a part, the latest first; of what is stuck those that wait the longest. */
async function read(part: Listed, filter: Filter, before: string | undefined) {
  if (part === 'STUCK') {
    const found = await longest(filter, STUCK, SHOWN);
    return { found, older: found.length < SHOWN ? undefined : null };
  }
  const { transactions } = await ask(TransactionsDocument, { filter: part ? filtersOf(filter)[part] : filter, last: SHOWN, before: before ?? null });
  const { hasPreviousPage, startCursor } = transactions.pageInfo;
  return { found: nodesOf(transactions).reverse(), older: (hasPreviousPage && startCursor) || undefined };
}

/** Keeps a list of transactions as it is now. It is read once the stream of updates is open, so that none falls between. */
function useLive(part: Listed, filter: Filter, isPaused: boolean) {
  const [round, setRound] = useState(0);
  const key = JSON.stringify([part, filter, round]);
  const [live, setLive] = useState<Live>({ key, rows: [] });
  if (live.key !== key) setLive({ key, rows: [] });
  /** The latest updates since the list was last requested. */
  const late = useRef<readonly Transaction[]>([]);
  const set = (by: (now: Live) => Partial<Live>) =>
    setLive((now) => {
      if (now.key !== key) return now;
      const next = { ...now, ...by(now) };
      return next.rows.length < KEPT ? next : { ...next, rows: next.rows.slice(0, KEPT), older: null };
    });
  const load = async (before?: string) => {
    late.current = [];
    try {
      const { found, older } = await read(part, filter, before);
      set((now) => {
        const kept = before === undefined ? [] : now.rows;
        const all = [...kept, ...found.filter(({ id }) => !kept.some((row) => row.id === id))];
        const rows = late.current.reduce<readonly Transaction[]>((rows, update) => updated(rows, update, part), all);
        return { older, isRead: true, rows, failure: undefined };
      });
    } catch (error) {
      set(() => ({ failure: failureOf(error) }));
    }
  };
  const onUpdate = (update: Transaction) => {
    late.current = [...late.current, update].slice(-KEPT);
    set(({ rows }) => ({ rows: updated(rows, update, part), latest: update.id }));
  };
  const stream = useUpdates(filter, isPaused ? undefined : key, load, onUpdate);
  return { live, stream, load, retry: () => setRound(round + 1) };
}

type TextOf = (row: Transaction) => string | null | undefined;
/** A column, and its cell in a CSV file. */
type TextColumn = Column<Transaction> & { text: TextOf };
const textual = (title: string, text: TextOf): TextColumn => ({ title, cell: text, text });
export const COLUMNS: readonly TextColumn[] = [
  { title: 'Status', cell: statusCell, text: ({ status }) => status && STATUSES[status][0] },
  { title: 'Type', cell: typeCell, text: typeWords },
  textual('Collection', ({ collection }) => collectionWords(collection)),
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} link=${linkTo(['transactions', id])} />`, text: ({ id }) => id },
];
export const REPORTED: TextColumn = { title: 'Reported', cell: ({ updatedAt }) => html`<${Time} at=${updatedAt} />`, text: ({ updatedAt }) => updatedAt };
const WAITS = textual('Waits for', waitsFor);
const ERROR = textual('Error', ({ error }) => error);
const HASH = textual('Hash', ({ transactionHash }) => transactionHash);

/** Saves rows as a CSV file, in which no spreadsheet takes a cell for a formula. */
function saveCsv(columns: readonly TextColumn[], rows: readonly Transaction[]): void {
  const cells = (row: Transaction) => columns.map(({ text }) => (text(row) ?? '').replace(/(?<=^|[;\t])(?=[=+\-@\t\r])/g, "'"));
  const records = [columns.map(({ title }) => title), ...rows.map(cells)].map(recordOf);
  saveFile(new Blob(records, { type: 'text/csv' }), 'transactions.csv');
}

export const show = (id?: string) => (id === undefined ? html`<${TransactionsPage} />` : html`<${TransactionPage} key=${id} id=${id} />`);

/** The list as it was last shown, to which one goes back. */
let back = '';
onSignOut(() => {
  back = '';
});

function TransactionsPage() {
  const { query } = place.value;
  const filter = useSettled(filterBy(query));
  back = linkTo(['transactions'], Object.fromEntries(query));
  const [part] = PARTS.find(([value]) => value === query.get('status')) ?? ([''] as const);
  const [isPaused, setPaused] = useState(false);
  const { live, stream, load, retry } = useLive(part, filter, isPaused);
  const { rows, isRead, older, latest } = live;
  const { link, updates, notice, round } = stream;
  const failure = live.failure ?? stream.failure;
  const counts = useAsk(TransactionCountsDocument, filtersOf(filter), round);
  const seen = updates > 0 && `${counted(updates, 'update')} since this view was opened.`;
  const change = (name: string, value: string) => {
    setPaused(false);
    setQuery({ [name]: value });
  };
  const entry = (name: string, label: string, attributes: object) =>
    html`<${Entry} label=${label} value=${query.get(name) ?? ''} onEnter=${(value: string) => change(name, value)} ...${attributes} />`;
  const issue = query.get('type') && filter.type === null ? 'Enter a whole number. The filter is not applied.' : undefined;
  const chips = chipsOf(query, part);
  const shown = [...COLUMNS, ...(part === 'STUCK' ? [WAITS] : rows.some(({ error }) => error) ? [ERROR] : []), REPORTED];
  const columns = shown.map((column) => ({ ...column, sortBy: column.text }));
  const today = midnight();
  const isToday = part !== 'STUCK' && query.get('since') === today;
  const csv = html`<button type="button" onClick=${() => saveCsv([...columns, HASH], rows)}><${Icon} name="download" />Download CSV</button>`;
  const pause = html`<button type="button" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>${isPaused ? 'Resume' : 'Pause'}</button>`;
  const status = html`<span class="link muted" role="status">${!isPaused && html`<${LinkBadge} link=${link} />`} ${seen} ${isPaused ? 'Paused. The list stays as it is.' : notice}</span>`;
  // Beside numbers that a time limits, the one that it does not limit says so.
  const textIn = (value: Listed, text: string) => (value === 'STUCK' && (filter.updatedSince ?? filter.updatedUntil) ? `${text}, any time` : text);
  const isShown = (value: Listed) => (value !== 'CONFLICT' && value !== 'FLAGGED') || value === part || counts.data?.[value].totalCount !== 0;
  return html`<${Page} title="Transactions" actions=${html`${status} ${pause} ${rows.length > 0 && csv}`}>
    <form class="filters" role="search" aria-label="Transactions" onSubmit=${(event: Event) => event.preventDefault()}>
      <${Input} label="Id or hash" type="search" maxlength="128" placeholder="In full, or its beginning"
        value=${query.get('search') ?? ''} onInput=${(value: string) => change('search', value)} />
      <${Select} label="Collection" value=${filter.collection ?? ''} onChange=${(value: string) => change('collection', value)}
        options=${[['', 'All'], ...COLLECTIONS.map((name) => [name, collectionWords(name)])]} />
      <p class="actions"><button type="button" aria-pressed=${isToday} disabled=${part === 'STUCK'} onClick=${() => change('since', isToday ? '' : today)}>Today</button></p>
      <details><summary>More filters</summary><div class="filters">
        ${entry('since', 'Reported from', { isTime: true })} ${entry('until', 'Reported before', { isTime: true })}
        ${entry('type', 'Type code', { inputmode: 'numeric', pattern: '[0-9]*', issue })}
      </div></details>
    </form>
    <${Chips} says="Filters:" chips=${chips} />
    <${Tabs} label="Status" value=${part} onChange=${(value: string) => change('status', value)}
      tabs=${PARTS.filter(([value]) => isShown(value)).map(([value, text]) => [value, textIn(value, text), countOf(counts.data, countedIn(value))])} />
    ${part === 'STUCK' && query.get('since') && html`<p class="muted">All that are stuck, whenever they were reported: the filter by time applies to the other tabs.</p>`}
    <${FailureBox} failure=${failure} retry=${retry} />
    ${!isRead && !failure && html`<${Skeleton} />`}
    ${isRead && rows.length === 0 && html`<${Nothing} isStuck=${part === 'STUCK'} isFiltered=${part !== '' || chips.length > 0} />`}
    ${
      rows.length > 0 &&
      html`<${Table} label="Transactions" columns=${columns} rows=${rows}
        linkOf=${({ id }: Transaction) => linkTo(['transactions', id])} marked=${({ id }: Transaction) => id === latest} />
      <p class="pager"><span>${counted(rows.length, 'transaction')} shown</span>
      ${older === null ? 'There are more. Use the filters to find them.' : older && html`<button type="button" onClick=${() => load(older)}>Show older ones</button>`}</p>`
    }
  <//>`;
}

/** Returns the filters of the address that count in a part: of what is stuck, none by time. */
function chipsOf(query: URLSearchParams, part: Listed): Chip[] {
  const timed = (name: string, at: string) =>
    at === midnight() ? `Reported ${name === 'since' ? 'since' : 'before'} midnight` : `Reported ${name === 'since' ? 'from' : 'before'} ${absolute(at)}`;
  const says: Readonly<Record<string, (value: string) => string>> = {
    search: (text) => `Begins with “${text}”`,
    collection: words,
    type: (type) => `Type ${type}`,
    error: (error) => `Error: ${error}`,
    ...(part !== 'STUCK' && { since: (at) => timed('since', at), until: (at) => timed('until', at) }),
  };
  const isOf = filterBy(query);
  const applied: Readonly<Record<string, unknown>> = { ...isOf, since: isOf.updatedSince, until: isOf.updatedUntil };
  const remove = (name: string) => () => setQuery({ [name]: '' });
  return Object.entries(says).flatMap(([name, say]) => (applied[name] === null ? [] : [[say(query.get(name) ?? ''), remove(name)]]));
}

function Nothing({ isStuck, isFiltered }: { isStuck: boolean; isFiltered: boolean }) {
  if (isStuck) return html`<${Empty} icon="check">No transaction waits for over an hour.<//>`;
  if (!isFiltered) return html`<${Empty}>No transactions yet. A transaction appears here after it is registered and its first notification arrives.<//>`;
  return html`<${Empty} icon="search" next=${html`<a class="button" href=${linkTo(['transactions'])}>Show all</a>`}>No transactions match.<//>`;
}

/** One transaction: where it stands, what it waits for, and how it has come to be what it is. */
function TransactionPage({ id }: { id: string }) {
  const asked = useAsk(TransactionDocument, { id, withAsset: may('tokens:read') });
  const { link, failure } = useUpdates({ idOrHash: id }, id, asked.reload, asked.reload);
  const networks = useAsk(NetworksDocument, asked.data?.transaction?.asset ? { first: 100 } : undefined);
  const found = asked.data?.transaction;
  return html`<${Page} title=${found ? (found.typeName ? typeWords(found) : `${collectionWords(found.collection)} transaction of type ${found.type}`) : 'Transaction'} trail=${[{ text: 'Transactions', link: back || linkTo(['transactions']) }]}>
    <${FailureBox} failure=${failure} />
    <${Found} asked=${asked} noun="transaction">${(transaction: OneTransaction) => {
      const { status, conflict, typeFlagged, error, events, gasUsed, asset, createdAt, updatedAt, transactionHash, contractAddress } = transaction;
      const received = events.edges.at(-1)?.node.occurredAt;
      const network = networks.data && nodesOf(networks.data.networks).find((one) => one.id === asset?.networkId);
      return html`
        <p class="actions">${statusCell(transaction)} <${Id} id=${transaction.id} /> ${createdAt && html`<span class="muted">reported first <${Time} at=${createdAt} /></span>`}
        ${!failure && !isFinal(status) && html`<span class="link" role="status"><${LinkBadge} link=${link} /></span>`}</p>
        ${conflict && html`<p class="warning">Conflicting notifications: one says done, another says error. The status shown is from the latest update.</p>`}
        ${typeFlagged && html`<p class="warning">This type code is unknown in the collection of the transaction. It came from a notification or the registration.</p>`}
        <${Timeline} of=${transaction} />
        ${error && html`<div class="failure"><p>${error}</p></div>`}
        <${Facts} of=${[
          ['Collection', words(transaction.collection)],
          ['Type code', transaction.type],
          ['Asset', asset && html`<a href=${linkTo(['assets', asset.id])}>${asset.name}</a>`],
          ['Network', network?.name],
          [
            'Transaction hash',
            transactionHash && html`<${Id} id=${transactionHash} /> <${Explorer} template=${network?.explorerUrl} hash=${transactionHash} />`,
          ],
          ['Contract address', contractAddress && html`<${Id} id=${contractAddress} />`],
          ['Gas used', gasUsed === '0' ? '' : gasUsed],
          ['Last reported', updatedAt && html`<${Time} at=${updatedAt} isAbsolute />`],
          ['Last received', received && html`<${Time} at=${received} isAbsolute />`],
        ]} />
        <h2>All notifications</h2>
        ${
          events.edges.length === 0
            ? html`<${Empty}>No notification has arrived yet.<//>`
            : html`<${Table} label="All notifications" columns=${EVENT_COLUMNS} rows=${nodesOf(events).reverse()} keyOf=${({ cursor }: Change) => cursor} />`
        }
        ${events.pageInfo.hasPreviousPage && html`<p class="muted">The latest 100 of ${events.totalCount} changes.</p>`}`;
    }}<//>
  <//>`;
}

type OneTransaction = NonNullable<TransactionQuery['transaction']>;
type Change = OneTransaction['events']['edges'][number]['node'];

/** The statuses that a transaction has gone through and those to come, with the time between them. */
function Timeline({ of }: { of: OneTransaction }) {
  const { status: now, collection } = of;
  const latestFirst = nodesOf(of.events).reverse();
  const reached = new Map(latestFirst.map(({ status, occurredAt }) => [status, occurredAt]));
  const steps: Status[] = [...OPEN, 'DONE', 'ERROR'];
  const isAhead = (status: Status, at: number) =>
    !isFinal(now) && status !== 'ERROR' && !(status === 'PENDING_RECEIPT' && skipsReceipt(collection)) && at > (now ? steps.indexOf(now) : -1);
  const shown = steps.filter((status, at) => reached.has(status) || isAhead(status, at));
  let before: string | undefined;
  return html`<ol class="timeline" aria-label="Progress">
    <li class=${now ? 'past' : 'now'}><b>Registered</b> ${!now && html`<span>waits for ${waitsFor(of)}</span>`}</li>
    ${shown.map((status) => {
      const at = reached.get(status);
      const lasted = at && before ? lasting(before, at) : undefined;
      before = at ?? before;
      const state = status === now ? (isFinal(now) ? STATUSES[status][1] : 'now') : at ? 'past' : '';
      return html`<li class=${state} aria-current=${status === now ? 'step' : undefined}><b>${STATUSES[status][0]}</b>
        ${at && html`<span>received <${Time} at=${at} isAbsolute /></span>`} ${lasted && html`<span class="muted">after ${lasted}</span>`}
        ${state === 'now' && html`<span>reported ${lasting(of.updatedAt ?? '', new Date().toISOString())} ago; waits for ${waitsFor(of)}</span>`}</li>`;
    })}
  </ol>`;
}

const EVENT_COLUMNS: readonly Column<Change>[] = [
  { title: 'Received', cell: ({ occurredAt }) => html`<${Time} at=${occurredAt} isAbsolute />` },
  { title: 'Status', cell: ({ status }) => html`<${StatusBadge} status=${status} />` },
  { title: 'Previous status', cell: ({ previousStatus }) => previousStatus && STATUSES[previousStatus][0] },
  { title: 'Error', cell: ({ error }) => error },
  { title: 'Request', cell: ({ correlationId }) => html`<${Id} id=${correlationId} />` },
];
