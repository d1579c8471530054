import { ask } from '../api.ts';
import {
  type TransactionPartsFragment as Transaction,
  type TransactionCollection,
  type TransactionCountsQuery,
  type TransactionFilter,
  type TransactionStatus,
  TransactionsDocument,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { zone } from '../remembered.ts';
import { nodesOf } from './list.ts';
import { Badge, words } from './text.ts';

export type { Transaction };

/** What each status is called, and whether that is good. */
export const STATUSES: Record<TransactionStatus, readonly [text: string, tone: 'good' | 'bad' | 'busy']> = {
  STARTED: ['Started', 'busy'],
  IN_PROGRESS: ['In progress', 'busy'],
  PENDING_RECEIPT: ['Waiting for a receipt', 'busy'],
  DONE: ['Done', 'good'],
  ERROR: ['Failed', 'bad'],
};

/** The statuses after which another one is expected. */
export const OPEN = ['STARTED', 'IN_PROGRESS', 'PENDING_RECEIPT'] as const satisfies readonly TransactionStatus[];

/** Whether transactions of a collection are done without waiting for a receipt. */
const skipsReceipt = (collection: TransactionCollection) => collection === 'USER_TRANSACTIONS';

/** Returns the statuses that a transaction of a collection goes through. */
export function stepsOf(collection: TransactionCollection): TransactionStatus[] {
  return [...OPEN.filter((status) => status !== 'PENDING_RECEIPT' || !skipsReceipt(collection)), 'DONE'];
}

/** Returns what a transaction waits for; undefined where its status is final. */
export function waitsFor({ status, collection }: Pick<Transaction, 'status' | 'collection'>): string | undefined {
  if (!status) return 'its first notification from the chain processor';
  if (status === 'STARTED') return 'the chain processor to prepare and sign it';
  if (status === 'PENDING_RECEIPT') return 'the network to confirm it';
  if (status !== 'IN_PROGRESS') return undefined;
  return skipsReceipt(collection) ? 'the chain processor to send it and confirm it' : 'the chain processor to send it to the network';
}

export function StatusBadge({ status }: { status: TransactionStatus | null | undefined }) {
  const [text, tone] = status ? STATUSES[status] : ['Not started', ''];
  return html`<${Badge} tone=${tone}>${text}<//>`;
}

/** Returns the type of a transaction in words. */
export function typeWords({ type, typeName }: Pick<Transaction, 'type' | 'typeName'>): string {
  return typeName ? words(typeName) : `Type ${type}`;
}

/** The parts of a list of transactions that are counted. */
export type Part = 'ALL' | TransactionStatus | 'STUCK' | 'CONFLICT' | 'FLAGGED';

/** Returns the filters by which `TransactionCounts` counts the parts of a list. */
export function filtersOfParts(filter: TransactionFilter) {
  const updatedUntil = [filter.updatedUntil ?? '9', stuckUntil()].sort()[0] ?? null;
  const of = (status: TransactionStatus) => ({ ...filter, status });
  const stuck = (status: TransactionStatus) => ({ ...filter, status, updatedUntil });
  return {
    ...{ STARTED: of('STARTED'), IN_PROGRESS: of('IN_PROGRESS'), PENDING_RECEIPT: of('PENDING_RECEIPT'), DONE: of('DONE'), ERROR: of('ERROR') },
    ...{ CONFLICT: { ...filter, conflict: true }, FLAGGED: { ...filter, flagged: true } },
    ...{ STUCK_STARTED: stuck('STARTED'), STUCK_IN_PROGRESS: stuck('IN_PROGRESS'), STUCK_PENDING_RECEIPT: stuck('PENDING_RECEIPT') },
  };
}

/** Returns how many are in a part, in words; undefined while that is unknown. */
export function countOf(counts: TransactionCountsQuery | undefined, part: Part): string | undefined {
  if (!counts || part === 'ALL') return undefined;
  if (part !== 'STUCK') return countText(counts[part].totalCount);
  const stuck = OPEN.map((status) => counts[`STUCK_${status}`].totalCount);
  return countText(stuck.includes(null) ? null : stuck.reduce<number>((sum, count) => sum + (count ?? 0), 0));
}

/** Returns a number of transactions, which is null beyond 1,000. */
function countText(count: number | null | undefined): string | undefined {
  return count === null ? '1,000+' : count?.toLocaleString('en');
}

/** Returns the start of the present day, in the zone that the person has chosen. */
export function midnight(): string {
  const date = new Date();
  return new Date(zone.value === 'utc' ? date.setUTCHours(0, 0, 0, 0) : date.setHours(0, 0, 0, 0)).toISOString();
}

/** Returns the time before which the last update of a transaction must be for it to count as stuck: an hour ago, in whole minutes. */
const stuckUntil = () => new Date((Math.floor(Date.now() / 60_000) - 60) * 60_000).toISOString();

const byUpdate = (a: Transaction, b: Transaction) => ((a.updatedAt ?? '') < (b.updatedAt ?? '') ? -1 : 1);
const READ = 100;

/**
 * Returns those transactions of a filter whose last update is the longest ago. Lists are in the order of registration:
 * the last of those found limits the next question, until one page has all that are left.
 */
export async function longestAgo(filter: TransactionFilter, count: number): Promise<Transaction[]> {
  let until = filter.updatedUntil ?? null;
  for (;;) {
    const { transactions } = await ask(TransactionsDocument, { filter: { ...filter, updatedUntil: until }, first: READ });
    const found = nodesOf(transactions).sort(byUpdate).slice(0, count);
    const last = found.at(-1)?.updatedAt;
    if (!transactions.pageInfo.hasNextPage || !last) return found;
    const next = new Date(new Date(last).getTime() + 1).toISOString();
    if (until !== null && next >= until) return found;
    until = next;
  }
}

/** Returns transactions that wait without an update for over an hour, the longest first. */
export async function stuckLongest(filter: TransactionFilter, count: number): Promise<Transaction[]> {
  const { STUCK_STARTED, STUCK_IN_PROGRESS, STUCK_PENDING_RECEIPT } = filtersOfParts(filter);
  const found = await Promise.all([STUCK_STARTED, STUCK_IN_PROGRESS, STUCK_PENDING_RECEIPT].map((of) => longestAgo(of, count)));
  return found.flat().sort(byUpdate).slice(0, count);
}
