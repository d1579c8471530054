import type { ComponentChildren as Content } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask, type Failure, failureOf, follow, type Link } from '../api.ts';
import {
  ChangedRulesDocument,
  LatestMigrationsDocument,
  TransactionCountsDocument,
  type TransactionFilter,
  TransactionStatsDocument,
  type TransactionStatsQuery,
  type TransactionStatus,
  TransactionsDocument,
  TransactionUpdatesDocument,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Chart } from '../kit/chart.ts';
import { nodesOf } from '../kit/list.ts';
import { Empty, FailureBox, may, Page, Skeleton } from '../kit/page.ts';
import { Badge, Id, LinkBadge, lasting, Time } from '../kit/text.ts';
import { countOf, filtersOfParts, longestAgo, midnight, type Part, stuckLongest, type Transaction, typeWords, waitsFor } from '../kit/transactions.ts';
import { linkTo } from '../router.ts';

const HOUR_MS = 3_600_000;
const HOURS = 24;
/** How often the numbers are read, in ms: after a change, and where there is none. */
const SOON_MS = 5_000;
const LATER_MS = 60_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** The number of transactions of a kind that are named. */
const NAMED = 5;

export function show() {
  return html`<${Overview} />`;
}

/** What stands out today; each part only for who may read it. */
function Overview() {
  const isReader = may('transactions:read');
  const [link, setLink] = useState<Link>({ state: 'connecting' });
  const [failure, setFailure] = useState<Failure>();
  const round = useRounds(isReader, setLink, setFailure);
  return html`<${Page} title="Overview" actions=${isReader && !failure && html`<span class="link" role="status"><${LinkBadge} link=${link} /></span>`}>
    <${FailureBox} failure=${failure} />
    ${isReader && html`<${Tiles} round=${round} />`}
    <div class="sides">
      ${isReader ? html`<${ByHour} round=${round} />` : html`<${Empty}>To see transactions here, you need the permission transactions:read.<//>`}
      <section class="card" aria-labelledby="attention"><h2 id="attention">Needs attention</h2><${Attention} round=${round} /></section>
    </div>
  <//>`;
}

/** Returns a number that grows when the numbers of the view are to be read again: soon after a change, and each minute. */
function useRounds(isLive: boolean, onLink: (link: Link) => void, onFailure: (failure: Failure) => void): number {
  const [round, setRound] = useState(0);
  useEffect(() => {
    let soon: ReturnType<typeof setTimeout> | undefined;
    const next = () => {
      soon = undefined;
      setRound((last) => last + 1);
    };
    const later = setInterval(next, LATER_MS);
    let after: string | undefined;
    const onNext = ({ transactionUpdates: { cursor } }: { transactionUpdates: { cursor: string } }) => {
      after = cursor;
      soon ??= setTimeout(next, SOON_MS);
    };
    const variables = () => ({ filter: null, after: after ?? null });
    const stop = isLive ? follow({ operation: TransactionUpdatesDocument, variables, onNext, onLink, onFailure }) : () => {};
    return () => {
      stop();
      clearInterval(later);
      clearTimeout(soon);
    };
  }, []);
  return round;
}

type ReadInput<Data> = { read: () => Promise<Data>; round: number; rows?: number; children: (data: Data) => Content };

/** Reads data when the view opens and in each round, and shows what `children` make of it. */
function Read<Data>({ read, round, rows = 5, children }: ReadInput<Data>) {
  const [{ data, failure }, setState] = useState<{ data?: Data; failure?: Failure }>({});
  useEffect(() => {
    let isOpen = true;
    read().then(
      (data) => isOpen && setState({ data }),
      (error: unknown) => isOpen && setState((last) => ({ ...last, failure: failureOf(error) })),
    );
    return () => {
      isOpen = false;
    };
  }, [round]);
  return html`<${FailureBox} failure=${failure} />${data === undefined ? !failure && html`<${Skeleton} rows=${rows} />` : children(data)}`;
}

const listOf = (part: Part, since = '') => linkTo(['transactions'], { status: part, since });
const age = ({ updatedAt }: Transaction) => lasting(updatedAt ?? '', new Date().toISOString());

/** Four numbers, each a link to the list of what it counts. */
function Tiles({ round }: { round: number }) {
  const since = midnight();
  const filters = { ...filtersOfParts({}), ERROR: { status: 'ERROR' as const, updatedSince: since } };
  const read = () => Promise.all([ask(TransactionCountsDocument, filters), longestAgo({ status: 'IN_PROGRESS' }, 1)]);
  return html`<${Read} read=${read} round=${round} rows=${2}>${([counts, [oldest]]: Awaited<ReturnType<typeof read>>) => {
    const tile = (part: Part, label: string, note: string, link = listOf(part)) =>
      html`<a class="tile" href=${link}><span>${label}</span><b>${countOf(counts, part)}</b><span class="muted">${note}</span></a>`;
    return html`<div class="tiles">
      ${tile('IN_PROGRESS', 'In progress', oldest ? `the oldest for ${age(oldest)}` : 'none waits')}
      ${tile('ERROR', 'Failed today', 'since midnight', listOf('ERROR', since))}
      ${tile('PENDING_RECEIPT', 'Waiting for a receipt', 'sent to the network')}
      ${tile('CONFLICT', 'Conflicts', 'reported as done and as failed')}
    </div>`;
  }}<//>`;
}

type Stat = TransactionStatsQuery['transactionStats'][number];

/** The transactions of the last 24 hours by the hour of their last update. */
function ByHour({ round }: { round: number }) {
  const end = (Math.floor(Date.now() / HOUR_MS) + 1) * HOUR_MS;
  const times = Array.from({ length: HOURS }, (_, at) => new Date(end - (HOURS - at) * HOUR_MS).toISOString());
  const read = () => ask(TransactionStatsDocument, { since: times[0] ?? '', until: new Date(end).toISOString() });
  const values = (stats: readonly Stat[], is: (status: TransactionStatus) => boolean) =>
    times.map((time) => stats.reduce((sum, { at, status, count }) => sum + (at === time && is(status) ? count : 0), 0));
  return html`<section class="card"><${Read} read=${read} round=${round}>${({ transactionStats: stats }: TransactionStatsQuery) => html`<${Chart}
    label="Transactions by hour of their last update" times=${times} series=${[
      { label: 'Done', tone: 'good', values: values(stats, (status) => status === 'DONE') },
      { label: 'Failed', tone: 'bad', values: values(stats, (status) => status === 'ERROR') },
      { label: 'Open', tone: 'busy', values: values(stats, (status) => status !== 'DONE' && status !== 'ERROR') },
    ]} />`}<//></section>`;
}

/** Something to look at. */
interface Concern {
  key: string;
  tone: 'bad' | 'busy' | '';
  kind: string;
  text: Content;
}

const named = (row: Transaction) => html`<a href=${linkTo(['transactions', row.id])}>${typeWords(row)}</a> <${Id} id=${row.id} />`;

/** Returns what a person should look at, the most urgent first; of each kind what the token may read. */
async function concerns(): Promise<Concern[]> {
  const transactions = async (kind: string, filter: TransactionFilter) => {
    const { transactions: found } = await ask(TransactionsDocument, { filter, last: NAMED });
    return nodesOf(found)
      .reverse()
      .map((row): Concern => ({ key: kind + row.id, tone: 'bad', kind, text: named(row) }));
  };
  const stuck = async () =>
    (await stuckLongest({}, NAMED)).map(
      (row): Concern => ({
        ...{ key: `stuck${row.id}`, tone: 'busy', kind: `Stuck for ${age(row)}` },
        text: html`${named(row)}<span>waits for ${waitsFor(row)}</span>`,
      }),
    );
  const migrations = async () => {
    const { migrations: listed } = await ask(LatestMigrationsDocument, {});
    return nodesOf(listed)
      .filter(({ status, createdAt }) => status === 'FAILED' && Date.now() - Date.parse(createdAt) < WEEK_MS)
      .map(
        ({ id, createdAt }): Concern => ({
          ...{ key: id, tone: 'bad', kind: 'Migration failed' },
          text: html`<a href=${linkTo(['migrations', id])}>Migration of users</a> <${Time} at=${createdAt} />`,
        }),
      );
  };
  const rules = async () => {
    const since = new Date(Date.parse(midnight()) - 24 * HOUR_MS).toISOString();
    const { walletRules } = await ask(ChangedRulesDocument, { since });
    return nodesOf(walletRules).map(
      ({ id, walletId, name, updatedAt }): Concern => ({
        ...{ key: id, tone: '', kind: 'Rule changed' },
        text: html`<a href=${linkTo(['wallets', walletId, 'rules', id])}>${name}</a> <${Time} at=${updatedAt} />`,
      }),
    );
  };
  const found = await Promise.all([
    ...(may('transactions:read') ? [stuck(), transactions('Conflict', { conflict: true }), transactions('Unknown type', { flagged: true })] : []),
    ...(may('users:read') ? [migrations()] : []),
    ...(may('wallet-rules:read') ? [rules()] : []),
  ]);
  return found.flat();
}

/** What a person should look at, each with a link. */
function Attention({ round }: { round: number }) {
  return html`<${Read} read=${concerns} round=${round} rows=${3}>${(rows: Concern[]) =>
    rows.length === 0
      ? html`<${Empty} icon="check">Nothing needs attention.<//>`
      : html`<ul class="concerns">${rows.map(({ key, tone, kind, text }) => html`<li key=${key}><${Badge} tone=${tone}>${kind}<//> ${text}</li>`)}</ul>
      ${may('transactions:read') && html`<p class="actions"><a href=${linkTo(['transactions'], { status: 'STUCK' })}>All that are stuck</a></p>`}`}<//>`;
}
