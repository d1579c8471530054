import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, type Failure, failureOf, follow, type Link } from '../api.ts';
import {
  type TransactionPartsFragment as Transaction,
  type TransactionCollection,
  TransactionHistoryDocument,
  type TransactionHistoryQuery,
  TransactionStateDocument,
  type TransactionStatus,
  TransactionsDocument,
  TransactionUpdatesDocument,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Field, inputOf } from '../kit/form.ts';
import { type Column, nodesOf, Table } from '../kit/list.ts';
import { Answer, Empty, FailureBox, Page, useAsk } from '../kit/page.ts';
import { Badge, Facts, Id, LinkBadge, Time, words } from '../kit/text.ts';
import { go, linkTo, place } from '../router.ts';

const COLLECTIONS: readonly TransactionCollection[] = [
  ...(['TOKEN_TRANSACTIONS', 'NODE_TRANSACTIONS', 'CURRENCY_TOKEN_TRANSACTIONS'] as const),
  ...(['USER_TRANSACTIONS', 'SECONDARY_MARKET_TRANSACTIONS', 'OTC_TRANSACTIONS'] as const),
];
const STATUSES: readonly TransactionStatus[] = ['STARTED', 'IN_PROGRESS', 'PENDING_RECEIPT', 'DONE', 'ERROR'];

/** Whether the updates of a transaction end with this status. */
const isFinal = (status: TransactionStatus | null | undefined) => status === 'DONE' || status === 'ERROR';

function StatusBadge({ status }: { status: TransactionStatus | null | undefined }) {
  if (!status) return html`<${Badge}>Not started<//>`;
  const tone = status === 'DONE' ? 'good' : status === 'ERROR' ? 'bad' : 'busy';
  return html`<${Badge} tone=${tone}>${words(status)}<//>`;
}

function TypeName({ of: { type, typeName, typeFlagged } }: { of: Transaction }) {
  return html`${typeName ?? `Type ${type}`} ${typeFlagged && html`<${Badge} tone="bad">type flagged<//>`}`;
}

type Filter = { collection: TransactionCollection | undefined; status: TransactionStatus | undefined; type: number | undefined };

function filterOf(query: URLSearchParams): Filter {
  const type = query.get('type') ?? '';
  return {
    collection: COLLECTIONS.find((known) => known === query.get('collection')),
    status: STATUSES.find((known) => known === query.get('status')),
    type: /^\d{1,9}$/.test(type) ? Number(type) : undefined,
  };
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
function updated(rows: readonly Transaction[], update: Transaction, { status }: Filter): Transaction[] {
  const others = rows.filter(({ id }) => id !== update.id);
  return status === undefined || update.status === status ? [update, ...others].slice(0, KEPT) : others;
}

/**
 * Keeps a list of transactions as it is now. The list is read once the stream of updates is open, so that none falls
 * between; an interrupted stream continues after the last update received.
 */
function useLive(filter: Filter) {
  const [live, setLive] = useState(NOTHING);
  const [round, setRound] = useState(0);
  /** The latest updates, which are newer than a list that was requested before them. */
  const changes = useRef(new Map<string, Transaction>());
  const change = useRef((_: (now: Live) => Partial<Live>) => {});
  const { collection = null, status = null, type = null } = filter;
  const key = JSON.stringify(filter);
  const query = { collection, type };
  const list = async (before?: string) => {
    const { transactions } = await ask(TransactionsDocument, { filter: { ...query, status }, last: SHOWN, before: before ?? null });
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
    set(() => NOTHING);
    const came = changes.current;
    const read = async () => {
      came.clear();
      try {
        const { listed, totalCount, older } = await list();
        const late = [...came.values()].filter(({ id, updatedAt }) => !listed.some((row) => row.id === id && (row.updatedAt ?? '') > (updatedAt ?? '')));
        const rows = late.reduce<readonly Transaction[]>((all, update) => updated(all, update, filter), listed);
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
        variables: () => ({ filter: query, after: after ?? null }),
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
          set((now) => ({ rows: updated(now.rows, transaction, filter), updates: now.updates + 1, latest: transaction.id }));
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
  }, [key, round]);
  const readOlder = async () => {
    const { listed, older } = await list(live.older);
    const isNew = ({ rows }: Live, id: string) => !changes.current.has(id) && !rows.some((row) => row.id === id);
    change.current((now) => ({ rows: [...now.rows, ...listed.filter(({ id }) => isNew(now, id))].slice(0, KEPT), older }));
  };
  const retry = () => setRound(round + 1);
  return { live, readOlder, retry, fail: (error: unknown) => change.current(() => ({ failure: failureOf(error) })) };
}

const COLUMNS: readonly Column<Transaction>[] = [
  { title: 'Status', cell: (row) => html`<${StatusBadge} status=${row.status} /> ${row.conflict && html`<${Badge} tone="bad">conflict<//>`}` },
  { title: 'Type', cell: (row) => html`<${TypeName} of=${row} />` },
  { title: 'Collection', cell: ({ collection }) => words(collection) },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} link=${linkTo(['transactions', id])} />` },
  { title: 'Error', cell: ({ error }) => error || html`<span class="muted">–</span>` },
  { title: 'Updated', cell: ({ updatedAt }) => html`<${Time} at=${updatedAt} />` },
];

export function show(id?: string) {
  return id === undefined ? html`<${TransactionsPage} />` : html`<${TransactionPage} key=${id} id=${id} />`;
}

/** The transactions of the node as they move. */
function TransactionsPage() {
  const { query } = place.value;
  const filter = filterOf(query);
  const { live, readOlder, retry, fail } = useLive(filter);
  const { rows, totalCount, older, isFull, link, failure, updates, notice, latest } = live;
  const set = (name: string) => (event: Event) => go(linkTo(['transactions'], { ...Object.fromEntries(query), [name]: inputOf(event) }), { replaces: true });
  const choice = (name: 'collection' | 'status', label: string, options: readonly string[]) =>
    html`<${Field} label=${label}>${(described: object) => html`<select ...${described} value=${query.get(name) ?? ''} onChange=${set(name)}>
      <option value="">All</option>${options.map((option) => html`<option value=${option}>${words(option)}</option>`)}</select>`}<//>`;
  return html`<${Page} title="Transactions">
    <form class="filters" onSubmit=${(event: Event) => event.preventDefault()}>
      ${choice('collection', 'Collection', COLLECTIONS)}
      ${choice('status', 'Status', STATUSES)}
      <${Field} label="Type code" issue=${query.get('type') && filter.type === undefined ? 'Enter a whole number. The filter is not applied.' : undefined}>${(described: object) => html`<input ...${described} inputmode="numeric" pattern="[0-9]*" value=${query.get('type') ?? ''} onChange=${set('type')} />`}<//>
    </form>
    <p class="link" role="status"><${LinkBadge} link=${link} /> ${updates} ${updates === 1 ? 'update' : 'updates'} since this view was opened. ${notice}</p>
    <${FailureBox} failure=${failure} retry=${retry} />
    ${totalCount === undefined && !failure && html`<p class="loading" role="status">Loading …</p>`}
    ${totalCount !== undefined && rows.length === 0 && html`<${Empty}>No transactions match yet. A transaction appears here after it is registered and its first notification arrives.<//>`}
    ${rows.length > 0 && html`<${Table} label="Transactions" columns=${COLUMNS} rows=${rows} keyOf=${({ id }: Transaction) => id} marked=${({ id }: Transaction) => id === latest} />`}
    <p class="pager"><span>${rows.length} shown${totalCount === undefined ? '' : `; ${totalCount ?? 'more than 1,000'} in total`}</span>
      ${isFull ? `Showing the latest ${KEPT}. Filter to see more.` : older !== undefined && html`<button type="button" onClick=${() => readOlder().catch(fail)}>Show older ones</button>`}</p>
  <//>`;
}

/** One transaction, and how it has come to be what it is. */
function TransactionPage({ id }: { id: string }) {
  const asked = useAsk(TransactionHistoryDocument, { id, last: 100 });
  const [link, setLink] = useState<Link>({ state: 'connecting' });
  const [failure, setFailure] = useState<Failure>();
  const variables = () => ({ id });
  useEffect(() => follow({ operation: TransactionStateDocument, variables, onNext: asked.reload, onLink: setLink, onFailure: setFailure }), [id]);
  return html`<${Page} title="Transaction" trail=${[{ text: 'Transactions', link: linkTo(['transactions']) }]}>
    <${Answer} asked=${asked}>${({ transaction }: NonNullable<typeof asked.data>) => {
      if (!transaction) return html`<${Empty}>There is no transaction with this id, or it belongs to another tenant.<//>`;
      const { status, conflict, typeFlagged, error, events } = transaction;
      return html`
        <p><${StatusBadge} status=${status} /> ${conflict && html`<${Badge} tone="bad">conflict<//>`}</p>
        ${failure ? html`<${FailureBox} failure=${failure} />` : !isFinal(status) && html`<p class="link" role="status"><${LinkBadge} link=${link} /></p>`}
        ${conflict && html`<p class="warning">Conflicting notifications: one says done, another says error. The status shown is from the latest update.</p>`}
        ${typeFlagged && html`<p class="warning">This type code is unknown in the collection of the transaction. It came from a notification or the registration.</p>`}
        ${error && html`<div class="failure"><p>${error}</p></div>`}
        <${Facts} of=${[
          ['Id', html`<code>${transaction.id}</code>`],
          ['Type', html`<${TypeName} of=${transaction} /> <small>code ${transaction.type}</small>`],
          ['Collection', words(transaction.collection)],
          ['Transaction hash', html`<code>${transaction.transactionHash || '–'}</code>`],
          ['Contract address', html`<code>${transaction.contractAddress || '–'}</code>`],
          ['Gas used', transaction.gasUsed],
          ['Created', html`<${Time} at=${transaction.createdAt} />`],
          ['Updated', html`<${Time} at=${transaction.updatedAt} />`],
        ]} />
        <h2>History</h2>
        ${events.totalCount === 0 ? html`<${Empty}>No notification has arrived yet.<//>` : html`<${Table} label="History" columns=${EVENT_COLUMNS} rows=${nodesOf(events).reverse()} keyOf=${({ cursor }: Change) => cursor} />`}
        ${events.pageInfo.hasPreviousPage && html`<p class="muted">The latest 100 of ${events.totalCount} changes.</p>`}`;
    }}<//>
  <//>`;
}

type Change = NonNullable<TransactionHistoryQuery['transaction']>['events']['edges'][number]['node'];

const EVENT_COLUMNS: readonly Column<Change>[] = [
  { title: 'When', cell: ({ occurredAt }) => html`<${Time} at=${occurredAt} />` },
  { title: 'Before', cell: ({ previousStatus }) => html`<${StatusBadge} status=${previousStatus} />` },
  { title: 'After', cell: ({ status }) => html`<${StatusBadge} status=${status} />` },
  { title: 'Error', cell: ({ error }) => error || html`<span class="muted">–</span>` },
  { title: 'Request', cell: ({ correlationId: id }) => html`<${Id} id=${id} link=${linkTo(['audit'], { correlationId: id ?? '' })} />` },
];
