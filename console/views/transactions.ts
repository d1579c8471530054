import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, type Failure, failureOf, follow, type Link } from '../api.ts';
import {
  ExplorersDocument,
  type TransactionCollection,
  TransactionCountsDocument,
  type TransactionFilter,
  TransactionHistoryDocument,
  type TransactionHistoryQuery,
  TransactionStateDocument,
  type TransactionStatus,
  TransactionsDocument,
  TransactionUpdatesDocument,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Field, inputOf, LOCAL_TIME, localOf, Select, utcOf } from '../kit/form.ts';
import { type Column, CsvDownload, nodesOf, Table, Tabs } from '../kit/list.ts';
import { Answer, Empty, FailureBox, may, Page, Skeleton, useAsk } from '../kit/page.ts';
import { Badge, Facts, Id, LinkBadge, lasting, Time, words } from '../kit/text.ts';
import {
  countOf,
  filtersOfParts,
  midnight,
  OPEN,
  type Part,
  STATUSES,
  StatusBadge,
  stepsOf,
  stuckLongest,
  type Transaction,
  typeWords,
  waitsFor,
} from '../kit/transactions.ts';
import { go, linkTo, place } from '../router.ts';

const COLLECTIONS: readonly TransactionCollection[] = [
  ...(['TOKEN_TRANSACTIONS', 'NODE_TRANSACTIONS', 'CURRENCY_TOKEN_TRANSACTIONS'] as const),
  ...(['USER_TRANSACTIONS', 'SECONDARY_MARKET_TRANSACTIONS', 'OTC_TRANSACTIONS'] as const),
];
/** The tabs of the list: a part of it each. */
const PARTS: readonly (readonly [part: Part, text: string])[] = [
  ['ALL', 'All'],
  ...OPEN.map((status) => [status, STATUSES[status][0]] as const),
  ['STUCK', 'Stuck over an hour'],
  ['ERROR', 'Failed'],
  ['DONE', 'Done'],
  ['CONFLICT', 'Conflicts'],
  ['FLAGGED', 'Unknown types'],
];

const isFinal = (status: TransactionStatus | null | undefined) => status === 'DONE' || status === 'ERROR';

function TypeName({ of }: { of: Transaction }) {
  return html`${typeWords(of)} ${of.typeFlagged && html`<${Badge} tone="bad">unknown type<//>`}`;
}

/** Which transactions are listed: a part of those that a filter matches. */
interface Listed {
  part: Part;
  filter: TransactionFilter;
}

function listedBy(query: URLSearchParams): Listed {
  const type = query.get('type') ?? '';
  return {
    part: PARTS.find(([part]) => part === query.get('status'))?.[0] ?? 'ALL',
    filter: {
      collection: COLLECTIONS.find((known) => known === query.get('collection')) ?? null,
      type: /^\d{1,9}$/.test(type) ? Number(type) : null,
      idOrHash: query.get('search')?.trim() || null,
      updatedSince: utcOf(query.get('since') ?? '') || null,
      updatedUntil: utcOf(query.get('until') ?? '') || null,
    },
  };
}

/** Returns the filter of a part; the part that is stuck is not read by one filter. */
const filterOf = ({ part, filter }: Listed): TransactionFilter => (part === 'ALL' || part === 'STUCK' ? filter : filtersOfParts(filter)[part]);

/** Whether a transaction that has just changed is in a part of the list. */
function isIn(part: Part, { status, conflict, typeFlagged }: Transaction): boolean {
  if (part === 'STUCK') return false;
  if (part === 'CONFLICT') return conflict;
  return part === 'FLAGGED' ? typeFlagged : part === 'ALL' || part === status;
}

const SHOWN = 50;
/** The greatest number of rows that are kept, so that a page that is open for days stays small. */
const KEPT = 500;

interface Live {
  rows: readonly Transaction[];
  totalCount: number | null | undefined;
  /** The cursor before the oldest row; undefined where there is none older. */
  older: string | undefined;
  /** Whether older rows may have been let go, so that those before them would leave a gap. */
  isFull: boolean;
  link: Link;
  failure: Failure | undefined;
  /** The number of updates since the view was opened. */
  updates: number;
  /** What has happened to the stream. */
  notice: string;
  latest: string | undefined;
}

const UNREAD = { totalCount: undefined, older: undefined, isFull: false, failure: undefined, latest: undefined };
const NOTHING: Live = { ...UNREAD, rows: [], link: { state: 'connecting' }, updates: 0, notice: '' };

/** Returns rows with an update in them: its transaction on top, or gone if it has left the filter. */
function updated(rows: readonly Transaction[], update: Transaction, part: Part): Transaction[] {
  const others = rows.filter(({ id }) => id !== update.id);
  return isIn(part, update) ? [update, ...others].slice(0, KEPT) : others;
}

/**
 * Keeps a list of transactions as it is now. The list is read once the stream of updates is open, so that none falls
 * between; an interrupted stream continues after the last update received.
 */
function useLive(listed: Listed, isPaused: boolean) {
  const [live, setLive] = useState(NOTHING);
  const [round, setRound] = useState(0);
  /** The latest updates, which are newer than a list that was requested before them. */
  const changes = useRef(new Map<string, Transaction>());
  const change = useRef((_: (now: Live) => Partial<Live>) => {});
  const { part, filter } = listed;
  const key = JSON.stringify(listed);
  const list = async (before?: string) => {
    if (part === 'STUCK') {
      const stuck = await stuckLongest(filter, SHOWN);
      return { listed: stuck, totalCount: stuck.length < SHOWN ? stuck.length : null, older: undefined };
    }
    const { transactions } = await ask(TransactionsDocument, { filter: filterOf(listed), last: SHOWN, before: before ?? null });
    const { hasPreviousPage, startCursor } = transactions.pageInfo;
    return { listed: nodesOf(transactions).reverse(), totalCount: transactions.totalCount, older: (hasPreviousPage && startCursor) || undefined };
  };
  useEffect(() => {
    let isOpen = true;
    let after: string | undefined;
    let wasCut = false;
    change.current = (by) => {
      if (isOpen)
        setLive((now) => {
          const next = { ...now, ...by(now) };
          return { ...next, isFull: next.isFull || next.rows.length === KEPT };
        });
    };
    const set = change.current;
    if (isPaused) {
      set(() => ({ notice: 'Paused. The list stays as it is.' }));
      return () => {
        isOpen = false;
      };
    }
    set(() => NOTHING);
    const came = changes.current;
    const read = async () => {
      came.clear();
      try {
        const { listed, totalCount, older } = await list();
        const late = [...came.values()].filter(({ id, updatedAt }) => !listed.some((row) => row.id === id && (row.updatedAt ?? '') > (updatedAt ?? '')));
        const rows = late.reduce<readonly Transaction[]>((all, update) => updated(all, update, part), listed);
        set(() => ({ rows, totalCount, older, isFull: false, failure: undefined }));
      } catch (error) {
        set(() => ({ failure: failureOf(error) }));
      }
    };
    let stop = () => {};
    const start = () => {
      stop = follow({
        operation: TransactionUpdatesDocument,
        // The status changes: the server must also report a transaction that leaves the filter.
        variables: () => ({ filter, after: after ?? null }),
        onLink: (link) => {
          if (link.state === 'waiting') wasCut = true;
          else if (link.state === 'live') {
            if (after === undefined) void read();
            if (wasCut) set(() => ({ notice: 'Reconnected. No updates were missed.' }));
          }
          set(() => ({ link }));
        },
        onNext: ({ transactionUpdates: { cursor, transaction } }) => {
          if (after !== undefined && BigInt(cursor) <= BigInt(after)) return;
          after = cursor;
          came.delete(transaction.id);
          came.set(transaction.id, transaction);
          if (came.size > KEPT) came.delete(came.keys().next().value ?? '');
          set((now) => ({ rows: updated(now.rows, transaction, part), updates: now.updates + 1, latest: transaction.id }));
        },
        onFailure: (failure) => {
          if (after === undefined) return set(() => ({ failure }));
          // The updates after the last one are no longer available: the list is loaded again.
          after = undefined;
          set(() => ({ notice: 'Missed updates are no longer available. The list was reloaded.' }));
          start();
        },
      });
    };
    start();
    return () => {
      isOpen = false;
      stop();
    };
  }, [key, round, isPaused]);
  const readOlder = async () => {
    const { listed, older } = await list(live.older);
    const isNew = ({ rows }: Live, id: string) => !changes.current.has(id) && !rows.some((row) => row.id === id);
    change.current((now) => ({ rows: [...now.rows, ...listed.filter(({ id }) => isNew(now, id))].slice(0, KEPT), older }));
  };
  const retry = () => setRound(round + 1);
  return { live, readOlder, retry, fail: (error: unknown) => change.current(() => ({ failure: failureOf(error) })) };
}

const COLUMNS: readonly Column<Transaction>[] = [
  {
    title: 'Status',
    cell: (row) => html`<${StatusBadge} status=${row.status} /> ${row.conflict && html`<${Badge} tone="bad">conflict<//>`}`,
    text: ({ status }) => status && STATUSES[status][0],
  },
  { title: 'Type', cell: (row) => html`<${TypeName} of=${row} />`, text: typeWords },
  { title: 'Collection', cell: ({ collection }) => words(collection), text: ({ collection }) => words(collection) },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} link=${linkTo(['transactions', id])} />`, text: ({ id }) => id },
];
const UPDATED: Column<Transaction> = { title: 'Updated', cell: ({ updatedAt }) => html`<${Time} at=${updatedAt} />`, text: ({ updatedAt }) => updatedAt };
const WAITS: Column<Transaction> = { title: 'Waits for', cell: waitsFor, text: waitsFor };
const ERROR: Column<Transaction> = { title: 'Error', cell: ({ error }) => error, text: ({ error }) => error };
const HASH: Column<Transaction> = { title: 'Hash', cell: () => null, text: ({ transactionHash }) => transactionHash };

/** The least time in ms between two looks at the counts, while updates come in. */
const COUNT_MS = 5_000;

export function show(id?: string) {
  return id === undefined ? html`<${TransactionsPage} />` : html`<${TransactionPage} key=${id} id=${id} />`;
}

/** The transactions of the tenant as they move. */
function TransactionsPage() {
  const { query } = place.value;
  const listed = listedBy(query);
  const { part, filter } = listed;
  const [isPaused, setPaused] = useState(false);
  const { live, readOlder, retry, fail } = useLive(listed, isPaused);
  const { rows, totalCount, older, isFull, link, failure, updates, notice, latest } = live;
  const counted = useAsk(TransactionCountsDocument, filtersOfParts(filter));
  useEffect(() => {
    const timer = updates > 0 ? setTimeout(counted.reload, COUNT_MS) : undefined;
    return () => clearTimeout(timer);
  }, [Math.min(updates, 1), counted.data]);
  const change = (name: string, value: string) => {
    setPaused(false);
    go(linkTo(['transactions'], { ...Object.fromEntries(query), [name]: value }), { replaces: true });
  };
  const typed = (name: string, as = (value: string) => value) => ({
    onChange: (event: Event) => change(name, as(inputOf(event))),
    autocomplete: 'off',
  });
  const isOdd = !!query.get('type') && filter.type === null;
  const time = (name: 'since' | 'until', label: string) =>
    html`<${Field} label=${label}>${(described: object) => html`<input ...${LOCAL_TIME} ...${described} value=${localOf(query.get(name) ?? '')} ...${typed(name, utcOf)} />`}<//>`;
  const columns = [...COLUMNS, ...(part === 'STUCK' ? [WAITS] : rows.some(({ error }) => error) ? [ERROR] : []), UPDATED];
  const csv = html`<${CsvDownload} name="transactions" columns=${[...columns, HASH]} rows=${() => rows} />`;
  const pause = html`<button type="button" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>${isPaused ? 'Resume' : 'Pause'}</button>`;
  return html`<${Page} title="Transactions" actions=${html`${pause} ${rows.length > 0 && csv}`}>
    <form class="filters" role="search" aria-label="Transactions" onSubmit=${(event: Event) => event.preventDefault()}>
      <${Field} label="Id or hash">${(described: object) => html`<input type="search" ...${described} value=${query.get('search') ?? ''} spellcheck="false" ...${typed('search')} />`}<//>
      <${Select} label="Collection" value=${filter.collection ?? ''} onChange=${(value: string) => change('collection', value)}
        options=${[['', 'All'], ...COLLECTIONS.map((name) => [name, words(name)])]} />
      <${Field} label="Type code" issue=${isOdd ? 'Enter a whole number. The filter is not applied.' : undefined}>${(described: object) =>
        html`<input ...${described} inputmode="numeric" pattern="[0-9]*" value=${query.get('type') ?? ''} ...${typed('type')} />`}<//>
      ${time('since', 'Updated from')} ${time('until', 'Updated before')}
      <p class="actions"><button type="button" onClick=${() => change('since', midnight())}>Today</button><a href=${linkTo(['transactions'])}>Clear</a></p>
    </form>
    <${Tabs} label="Status" value=${part} onChange=${(value: Part) => change('status', value === 'ALL' ? '' : value)}
      tabs=${PARTS.map(([value, text]) => ({ value, text, count: countOf(counted.data, value) }))} />
    <p class="link" role="status">${!isPaused && html`<${LinkBadge} link=${link} />`} ${updates} ${updates === 1 ? 'update' : 'updates'} since this view was opened. ${notice}</p>
    <${FailureBox} failure=${failure} retry=${retry} />
    ${totalCount === undefined && !failure && html`<${Skeleton} />`}
    ${totalCount !== undefined && rows.length === 0 && html`<${Nothing} of=${listed} />`}
    ${
      rows.length > 0 &&
      html`<${Table} label="Transactions" columns=${columns} rows=${rows} keyOf=${({ id }: Transaction) => id}
      linkOf=${({ id }: Transaction) => linkTo(['transactions', id])} marked=${({ id }: Transaction) => id === latest} />`
    }
    ${
      rows.length > 0 &&
      html`<p class="pager"><span>${rows.length} shown${totalCount === undefined ? '' : `; ${totalCount?.toLocaleString('en') ?? 'more'} in total`}</span>
      ${isFull ? `Showing the latest ${KEPT}. Filter to see more.` : older !== undefined && html`<button type="button" onClick=${() => readOlder().catch(fail)}>Show older ones</button>`}</p>`
    }
  <//>`;
}

/** Why no transaction is listed. */
function Nothing({ of: { part, filter } }: { of: Listed }) {
  const isFiltered = part !== 'ALL' || Object.values(filter).some((value) => value !== null);
  if (part === 'STUCK') return html`<${Empty} icon="check">No transaction waits for over an hour.<//>`;
  if (!isFiltered) return html`<${Empty}>No transactions yet. A transaction appears here after it is registered and its first notification arrives.<//>`;
  const all = html`<a class="button" href=${linkTo(['transactions'])}>Show all</a>`;
  return html`<${Empty} icon="search" ...${{ action: all }}>No transactions match.<//>`;
}

/** One transaction: where it stands, what it waits for, and how it has come to be what it is. */
function TransactionPage({ id }: { id: string }) {
  const asked = useAsk(TransactionHistoryDocument, { id, last: 100, withAsset: may('tokens:read') });
  const [link, setLink] = useState<Link>({ state: 'connecting' });
  const [failure, setFailure] = useState<Failure>();
  const variables = () => ({ id });
  useEffect(() => follow({ operation: TransactionStateDocument, variables, onNext: asked.reload, onLink: setLink, onFailure: setFailure }), [id]);
  const found = asked.data?.transaction;
  const explorers = useAsk(ExplorersDocument, found?.asset ? {} : undefined);
  const network = explorers.data && nodesOf(explorers.data.networks).find((one) => one.id === found?.asset?.networkId);
  return html`<${Page} title=${found ? typeWords(found) : 'Transaction'} trail=${[{ text: 'Transactions', link: linkTo(['transactions']) }]}>
    <${Answer} asked=${asked}>${({ transaction }: NonNullable<typeof asked.data>) => {
      if (!transaction) return html`<${Empty}>There is no transaction with this id, or it belongs to another tenant.<//>`;
      const { status, conflict, typeFlagged, error, events, gasUsed, asset } = transaction;
      const changes = nodesOf(events).reverse();
      return html`
        <p class="actions"><${StatusBadge} status=${status} /> ${conflict && html`<${Badge} tone="bad">conflict<//>`} <${Id} id=${transaction.id} /> ${
          transaction.createdAt && html`<span class="muted">queued <${Time} at=${transaction.createdAt} /></span>`
        } ${!failure && !isFinal(status) && html`<span class="link" role="status"><${LinkBadge} link=${link} /></span>`}</p>
        ${failure && html`<${FailureBox} failure=${failure} />`}
        ${conflict && html`<p class="warning">Conflicting notifications: one says done, another says error. The status shown is from the latest update.</p>`}
        ${typeFlagged && html`<p class="warning">This type code is unknown in the collection of the transaction. It came from a notification or the registration.</p>`}
        <${Timeline} of=${transaction} />
        ${error && html`<div class="failure"><p>${error}</p></div>`}
        <${Facts} of=${[
          ['Collection', words(transaction.collection)],
          ['Type code', transaction.type],
          ['Asset', asset?.name],
          ['Network', network?.name],
          [
            'Transaction hash',
            transaction.transactionHash &&
              html`<${Id} id=${transaction.transactionHash} /> <${Explorer} template=${network?.explorerUrl} hash=${transaction.transactionHash} />`,
          ],
          ['Contract address', transaction.contractAddress && html`<${Id} id=${transaction.contractAddress} />`],
          ['Gas used', gasUsed === '0' ? '' : gasUsed],
          ['Last update', transaction.updatedAt && html`<${Time} at=${transaction.updatedAt} isAbsolute />`],
        ]} />
        <h2>All notifications</h2>
        ${changes.length === 0 ? html`<${Empty}>No notification has arrived yet.<//>` : html`<${Table} label="All notifications" columns=${EVENT_COLUMNS} rows=${changes} keyOf=${({ cursor }: Change) => cursor} />`}
        ${events.pageInfo.hasPreviousPage && html`<p class="muted">The latest 100 of ${events.totalCount} changes.</p>`}`;
    }}<//>
  <//>`;
}

/** A link to a transaction in the explorer of its network; nothing where no address is known. */
function Explorer({ template, hash }: { template: string | null | undefined; hash: string }) {
  const link = template?.replaceAll('{hash}', encodeURIComponent(hash));
  return link !== undefined && /^https?:/.test(link) && html`<a href=${link} target="_blank" rel="noreferrer">Open in explorer</a>`;
}

type Found = NonNullable<TransactionHistoryQuery['transaction']>;
type Change = Found['events']['edges'][number]['node'];

/** The statuses that a transaction has gone through and those to come, with the time between them. */
function Timeline({ of }: { of: Found }) {
  const changes = nodesOf(of.events);
  const reached = new Map(changes.toReversed().map(({ status, occurredAt }) => [status, occurredAt]));
  const isOver = isFinal(of.status);
  const steps = of.status === 'ERROR' ? [...stepsOf(of.collection).slice(0, -1), 'ERROR' as const] : stepsOf(of.collection);
  // A transaction may skip a status; those that it can still reach are ahead of it.
  const now = of.status ? steps.indexOf(of.status) : -1;
  const shown = steps.filter((status, at) => reached.has(status) || (!isOver && at > now));
  let before: string | undefined;
  return html`<ol class="timeline" aria-label="Progress">
    <li class=${of.status ? 'past' : 'now'}><b>Registered</b> ${!of.status && html`<span>waits for ${waitsFor(of)}</span>`}</li>
    ${shown.map((status) => {
      const at = reached.get(status);
      const lasted = at && before ? lasting(before, at) : undefined;
      before = at ?? before;
      const state = status === of.status ? (isOver ? STATUSES[status][1] : 'now') : at ? 'past' : '';
      return html`<li class=${state} aria-current=${status === of.status ? 'step' : undefined}><b>${STATUSES[status][0]}</b>
        ${at && html`<${Time} at=${at} isAbsolute />`} ${lasted && html`<span class="muted">after ${lasted}</span>`}
        ${state === 'now' && html`<span>for ${lasting(at ?? '', new Date().toISOString())}; waits for ${waitsFor(of)}</span>`}</li>`;
    })}
  </ol>`;
}

const EVENT_COLUMNS: readonly Column<Change>[] = [
  { title: 'When', cell: ({ occurredAt }) => html`<${Time} at=${occurredAt} isAbsolute />` },
  { title: 'Status', cell: ({ status }) => html`<${StatusBadge} status=${status} />` },
  { title: 'Before', cell: ({ previousStatus }) => previousStatus && STATUSES[previousStatus][0] },
  { title: 'Error', cell: ({ error }) => error },
  {
    title: 'Request',
    cell: ({ correlationId: id }) => id && html`<${Id} id=${id} link=${may('audit:read') ? linkTo(['audit'], { correlationId: id }) : undefined} />`,
  },
];
