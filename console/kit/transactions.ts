import { useEffect, useState } from 'preact/hooks';
import { ask, type Failure, follow, type Link } from '../api.ts';
import { type TransactionPartsFragment as Transaction, type TransactionFilter, TransactionsDocument, UpdatesDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { zone } from '../remembered.ts';
import { linkTo } from '../router.ts';
import { nodesOf } from './list.ts';
import { may } from './page.ts';
import { words } from './text.ts';

export type { Transaction };

/** Says why there is no list of the transactions of a user or wallet. */
export const NoTransactions = ({ of }: { of: string }) =>
  may('transactions:read') &&
  html`<p class="muted">The platform does not say which transactions are of this ${of}. <a href=${linkTo(['transactions'])}>Find one by its id or hash.</a></p>`;

/** Whether transactions of a collection are done without waiting for a receipt. */
export const skipsReceipt = (collection: Transaction['collection']) => collection === 'USER_TRANSACTIONS';

/** Returns what a transaction waits for; undefined where its status is final. */
export function waitsFor({ status, collection, transactionHash }: Pick<Transaction, 'status' | 'collection' | 'transactionHash'>): string | undefined {
  if (!status) return 'its first notification from the chain processor';
  if (status === 'STARTED') return 'the chain processor to prepare and sign it';
  if (status === 'PENDING_RECEIPT') return 'the network to confirm it';
  if (status !== 'IN_PROGRESS') return undefined;
  if (transactionHash) return 'the chain processor to report what became of it on the network';
  return skipsReceipt(collection) ? 'the chain processor to send it and confirm it' : 'the chain processor to send it to the network';
}

/** Returns the name of a collection as words, without what all of them end with. */
export const collectionWords = (collection: Transaction['collection']) => words(collection.replace('_TRANSACTIONS', ''));

export function typeWords({ type, typeName }: Pick<Transaction, 'type' | 'typeName'>): string {
  return typeName ? words(typeName) : `Type ${type}`;
}

/** A part of a list that is counted. */
export type Part = keyof ReturnType<typeof filtersOf>;

/**
 * Returns the filters by which `TransactionCounts` counts the parts of a list: by status, those stuck over an hour, and what is odd.
 * What is stuck is so whatever the time that is looked at.
 */
export function filtersOf(filter: TransactionFilter) {
  const stuck = { ...filter, updatedSince: null, updatedUntil: stuckUntil() };
  return {
    STARTED: { ...filter, status: 'STARTED' },
    IN_PROGRESS: { ...filter, status: 'IN_PROGRESS' },
    PENDING_RECEIPT: { ...filter, status: 'PENDING_RECEIPT' },
    DONE: { ...filter, status: 'DONE' },
    ERROR: { ...filter, status: 'ERROR' },
    CONFLICT: { ...filter, conflict: true },
    FLAGGED: { ...filter, flagged: true },
    STUCK_STARTED: { ...stuck, status: 'STARTED' },
    STUCK_IN_PROGRESS: { ...stuck, status: 'IN_PROGRESS' },
    STUCK_PENDING_RECEIPT: { ...stuck, status: 'PENDING_RECEIPT' },
  } satisfies Readonly<Record<string, TransactionFilter>>;
}

/** The parts that wait without an update for over an hour. */
export const STUCK = ['STUCK_STARTED', 'STUCK_IN_PROGRESS', 'STUCK_PENDING_RECEIPT'] as const;

/** Returns how many are in all of some parts; undefined while that is unknown. A part counts null beyond 1,000. */
export function countOf(counts: Readonly<Record<Part, { totalCount: number | null }>> | undefined, parts: readonly Part[]): string | undefined {
  if (!counts || parts.length === 0) return undefined;
  const found = parts.map((part) => counts[part].totalCount);
  return found.includes(null) ? '1,000+' : found.reduce<number>((sum, count) => sum + (count ?? 0), 0).toLocaleString('en');
}

/** Returns the start of the present day, in the zone that the person has chosen. */
export function midnight(): string {
  const date = new Date();
  return new Date(zone.value === 'utc' ? date.setUTCHours(0, 0, 0, 0) : date.setHours(0, 0, 0, 0)).toISOString();
}

/** Returns since when a transaction is stuck: the last report about it is over an hour old, and another one is expected. */
export function stuckSince(transaction: Transaction): string | undefined {
  const { updatedAt } = transaction;
  return updatedAt && updatedAt < stuckUntil() && waitsFor(transaction) !== undefined ? updatedAt : undefined;
}

/** Returns the time of an hour ago, in whole minutes. */
const stuckUntil = () => new Date((Math.floor(Date.now() / 60_000) - 60) * 60_000).toISOString();

const byUpdate = (a: Transaction, b: Transaction) => ((a.updatedAt ?? '') < (b.updatedAt ?? '') ? -1 : 1);
const READ = 100;

/**
 * Lists are in the order of registration: the last update of those found limits the next question, until one page has
 * all that are left.
 */
async function oldestOf(filter: TransactionFilter, count: number): Promise<Transaction[]> {
  const { transactions } = await ask(TransactionsDocument, { filter, first: READ });
  const found = nodesOf(transactions).sort(byUpdate).slice(0, count);
  const last = found.at(-1)?.updatedAt;
  if (!transactions.pageInfo.hasNextPage || !last) return found;
  const updatedUntil = new Date(Date.parse(last) + 1).toISOString();
  return updatedUntil < (filter.updatedUntil ?? '9') ? oldestOf({ ...filter, updatedUntil }, count) : found;
}

/** Returns those transactions of some parts of a list whose last update is the longest ago. */
export async function longest(filter: TransactionFilter, parts: readonly Part[], count: number): Promise<Transaction[]> {
  const filters = filtersOf(filter);
  const found = await Promise.all(parts.map((part) => oldestOf(filters[part], count)));
  return found.flat().sort(byUpdate).slice(0, count);
}

interface Stream {
  link: Link;
  failure?: Failure;
  /** What has happened to it. */
  notice: string;
  /** The number of updates since it was opened. */
  updates: number;
}

const CONNECTING: Stream = { link: { state: 'connecting' }, notice: '', updates: 0 };

/**
 * Follows the updates of transactions; anew with another key, and not without one. An interrupted stream continues after
 * the last update received. Its `round` grows when numbers are to be read again.
 * @param onStart called when the stream is open: what is read from then on lacks none of its updates.
 */
export function useUpdates(filter: TransactionFilter, key: string | undefined, onStart = () => {}, onUpdate = (_: Transaction) => {}) {
  const [stream, setStream] = useState(CONNECTING);
  useEffect(() => {
    if (key === undefined) return;
    let after: string | undefined;
    let wasCut = false;
    const set = (by: Partial<Stream>) => setStream((now) => ({ ...now, ...by }));
    setStream(CONNECTING);
    const start = () =>
      follow({
        operation: UpdatesDocument,
        variables: () => ({ filter, after: after ?? null }),
        onLink: (link) => {
          wasCut ||= link.state === 'waiting';
          const isLive = link.state === 'live';
          if (isLive && after === undefined) onStart();
          set(isLive && wasCut ? { link, notice: 'Reconnected. No updates were missed.' } : { link });
        },
        onNext: ({ transactionUpdates: { cursor, transaction } }) => {
          if (after !== undefined && BigInt(cursor) <= BigInt(after)) return;
          after = cursor;
          onUpdate(transaction);
          setStream((now) => ({ ...now, updates: now.updates + 1 }));
        },
        onFailure: (failure) => {
          if (after === undefined) return set({ failure });
          after = undefined;
          set({ notice: 'Missed updates are no longer available. The list was reloaded.' });
          stop = start();
        },
      });
    let stop = start();
    return () => stop();
  }, [key]);
  return { ...stream, round: useRounds(stream.updates) };
}

/** How long numbers stay as they are after an update, and where there is none, in ms. */
const SOON_MS = 5_000;
const LATER_MS = 60_000;

/** Returns a number that grows when numbers are to be read again: soon after an update, and each minute. */
function useRounds(updates: number): number {
  const [{ round, seen }, set] = useState({ round: 0, seen: 0 });
  const hasNew = updates !== seen;
  useEffect(() => {
    const timer = setTimeout(() => set({ round: round + 1, seen: updates }), hasNew ? SOON_MS : LATER_MS);
    return () => clearTimeout(timer);
  }, [round, hasNew]);
  return round;
}
