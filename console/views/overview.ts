import type { ComponentChildren as Content } from 'preact';
import { ask } from '../api.ts';
import { ConcernsDocument, TransactionCountsDocument, TransactionStatsDocument, type TransactionStatsQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Chart } from '../kit/chart.ts';
import { nodesOf } from '../kit/list.ts';
import { Answer, Empty, FailureBox, may, Page, useAsk } from '../kit/page.ts';
import { Badge, Id, LinkBadge, lasting, Time } from '../kit/text.ts';
import { countOf, filtersOfParts, longestAgo, midnight, type Part, STUCK, type Transaction, typeWords, useUpdates, waitsFor } from '../kit/transactions.ts';
import { linkTo } from '../router.ts';

const HOUR_MS = 3_600_000;
const HOURS = 24;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** The number of stuck transactions that are named. */
const NAMED = 5;

export function show() {
  return html`<${Overview} />`;
}

/** What stands out today; each part only for who may read it. */
function Overview() {
  const isReader = may('transactions:read');
  const { link, failure, round } = useUpdates({}, isReader ? 'all' : undefined);
  return html`<${Page} title="Overview" actions=${isReader && !failure && html`<span class="link" role="status"><${LinkBadge} link=${link} /></span>`}>
    <${FailureBox} failure=${failure} />
    ${isReader && html`<${Tiles} round=${round} />`}
    <div class="sides">
      <section class="card" aria-labelledby="attention"><h2 id="attention">Needs attention</h2><${Attention} round=${round} /></section>
      ${isReader ? html`<${ByHour} round=${round} />` : html`<${Empty}>To see transactions here, you need the permission transactions:read.<//>`}
    </div>
  <//>`;
}

const age = ({ updatedAt }: Transaction) => lasting(updatedAt ?? '', new Date().toISOString());

function tiles({ since }: { since: string }) {
  const filters = { ...filtersOfParts({}), ERROR: { status: 'ERROR' as const, updatedSince: since } };
  return Promise.all([ask(TransactionCountsDocument, filters), longestAgo({}, ['IN_PROGRESS'], 1)]);
}

/** Four numbers, each a link to the list of what it counts. */
function Tiles({ round }: { round: number }) {
  const since = midnight();
  const asked = useAsk(tiles, { since }, round);
  return html`<${Answer} asked=${asked}>${([counts, [oldest]]: Awaited<ReturnType<typeof tiles>>) => {
    const tile = (label: string, note: string, part: Part, query: Record<string, string> = {}) =>
      html`<a class="tile" href=${linkTo(['transactions'], { status: part, ...query })}><span>${label}</span><b>${countOf(counts, [part])}</b>
        <span class="muted">${note}</span></a>`;
    const started = counts.STARTED.totalCount === 0 ? '' : `; ${countOf(counts, ['STARTED'])} more started`;
    return html`<div class="tiles">
      ${tile('In progress', `${oldest ? `the oldest for ${age(oldest)}` : 'none waits'}${started}`, 'IN_PROGRESS')}
      ${tile('Failed today', 'since midnight', 'ERROR', { since })}
      ${tile('Waiting for a receipt', 'sent to the network', 'PENDING_RECEIPT')}
      ${tile('Conflicts', 'reported as done and as failed', 'CONFLICT')}
    </div>`;
  }}<//>`;
}

type Stat = TransactionStatsQuery['transactionStats'][number];

/** The transactions of the last 24 hours by the hour of their last update. */
function ByHour({ round }: { round: number }) {
  const end = (Math.floor(Date.now() / HOUR_MS) + 1) * HOUR_MS;
  const times = Array.from({ length: HOURS }, (_, at) => new Date(end - (HOURS - at) * HOUR_MS).toISOString());
  const asked = useAsk(TransactionStatsDocument, { since: times[0] ?? '', until: new Date(end).toISOString() }, round);
  const values = (stats: readonly Stat[], is: (status: Stat['status']) => boolean) =>
    times.map((time) => stats.reduce((sum, { at, status, count }) => sum + (at === time && is(status) ? count : 0), 0));
  return html`<section class="card"><${Answer} asked=${asked}>${({ transactionStats: stats }: TransactionStatsQuery) => html`<${Chart}
    label="Last 24 hours, by hour of the last update" times=${times} series=${[
      { label: 'Done', tone: 'good', values: values(stats, (status) => status === 'DONE') },
      { label: 'Failed', tone: 'bad', values: values(stats, (status) => status === 'ERROR') },
      { label: 'Open', tone: 'busy', values: values(stats, (status) => status !== 'DONE' && status !== 'ERROR') },
    ]} />`}<//></section>`;
}

/** Something to look at: of what kind, where it is, and what else there is to say. */
type Concern = [tone: 'bad' | 'busy' | '', kind: string, link: string, name: string, more: Content];

/** Returns what a person should look at, the most urgent first; of each kind what the token may read. */
async function concerns(): Promise<Concern[]> {
  const withTransactions = may('transactions:read');
  const rulesSince = new Date(Date.parse(midnight()) - 24 * HOUR_MS).toISOString();
  const permitted = { withTransactions, withMigrations: may('users:read'), withRules: may('wallet-rules:read') };
  const [stuck, found] = await Promise.all([withTransactions ? longestAgo({}, STUCK, NAMED) : [], ask(ConcernsDocument, { ...permitted, rulesSince })]);
  const listed = <Row>(list: { edges: readonly { node: Row }[] } | undefined) => (list ? nodesOf(list) : []);
  const of = (row: Transaction) => [linkTo(['transactions', row.id]), typeWords(row)] as const;
  const id = (row: Transaction) => html`<${Id} id=${row.id} />`;
  const isRecent = (at: string) => Date.now() - Date.parse(at) < WEEK_MS;
  const failed = listed(found.migrations).filter(({ status, createdAt }) => status === 'FAILED' && isRecent(createdAt));
  return [
    ...stuck.map((row): Concern => ['busy', `Stuck for ${age(row)}`, ...of(row), html`${id(row)} <span>waits for ${waitsFor(row)}</span>`]),
    ...listed(found.conflicts).map((row): Concern => ['bad', 'Conflict', ...of(row), id(row)]),
    ...listed(found.flagged).map((row): Concern => ['bad', 'Unknown type', ...of(row), id(row)]),
    ...failed.map((row): Concern => ['bad', 'Migration failed', linkTo(['migrations', row.id]), 'Migration of users', html`<${Time} at=${row.createdAt} />`]),
    ...listed(found.walletRules).map(
      ({ id, walletId, name, version, updatedAt }): Concern => [
        '',
        version > 1 ? 'Rule changed' : 'New rule',
        linkTo(['wallets', walletId, 'rules', id], { history: 'open' }),
        name,
        html`<${Time} at=${updatedAt} />`,
      ],
    ),
  ];
}

function Attention({ round }: { round: number }) {
  const item = ([tone, kind, link, name, more]: Concern) => html`<li><${Badge} tone=${tone}>${kind}<//> <a href=${link}>${name}</a> ${more}</li>`;
  return html`<${Answer} asked=${useAsk(concerns, {}, round)}>${(rows: Concern[]) =>
    rows.length === 0
      ? html`<${Empty} icon="check">Nothing needs attention.<//>`
      : html`<ul class="concerns">${rows.map(item)}</ul>
      ${may('transactions:read') && html`<p class="actions"><a href=${linkTo(['transactions'], { status: 'STUCK' })}>All that are stuck</a></p>`}`}<//>`;
}
