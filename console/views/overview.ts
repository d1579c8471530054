import type { ComponentChildren as Content } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, mutate } from '../api.ts';
import type { AttentionQuery, TransactionStatsQuery } from '../generated/graphql.ts';
import { AttentionDocument, MarkSeenDocument, TransactionCountsDocument, TransactionStatsDocument, TransactionsDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { AttemptsLine, useAttempts } from '../kit/attempts.ts';
import { Chart } from '../kit/chart.ts';
import { Form, Input } from '../kit/form.ts';
import { Icon } from '../kit/icons.ts';
import { type Column, nodesOf, Table } from '../kit/list.ts';
import { toast } from '../kit/overlay.ts';
import { Answer, type Asked, Empty, FailureBox, may, Needs, Page, restoreFocus, useAction, useAsk } from '../kit/page.ts';
import { Named, useName } from '../kit/picker.ts';
import { actors } from '../kit/sources.ts';
import { Badge, CopyLink, clock, counted, Id, LinkBadge, lasting, Time } from '../kit/text.ts';
import { countOf, filtersOf, longest, midnight, type Part, type Transaction, typeWords, useUpdates, waitsFor } from '../kit/transactions.ts';
import { linkTo, place } from '../router.ts';

const HOUR_MS = 3_600_000;
const HOURS = 24;

export const show = () => html`<${Overview} />`;

/** What needs a decision, then what goes on; each part only for who may read it. */
function Overview() {
  const isReader = may('transactions:read');
  const group = place.value.query.get('group');
  const { link, failure, round } = useUpdates({}, isReader ? 'all' : undefined);
  const rulesSince = new Date(Date.parse(midnight()) - 24 * HOUR_MS).toISOString();
  const asked = useAsk(AttentionDocument, { rulesSince, withRules: may('wallet-rules:read'), withTransactions: isReader }, round);
  const open = asked.data?.needsAttention.find((one) => keyOf(one) === group);
  return html`<${Page} title="Overview" actions=${isReader && !failure && html`<span class="link" role="status"><${LinkBadge} link=${link} /></span>`}>
    <${FailureBox} failure=${failure} />
    <div class="sides">
      <section class="card" aria-labelledby="attention"><h2 id="attention">Needs attention</h2><${Attention} asked=${asked} open=${open} /></section>
      ${open ? html`<${GroupPane} key=${group} of=${open} onMarked=${asked.reload} />` : isReader ? html`<${ByHour} round=${round} />` : html`<${Empty}>To see transactions here, you need the permission transactions:read.<//>`}
    </div>
    ${isReader && html`<${Tiles} round=${round} />`}
  <//>`;
}

const oldest = (transaction: Transaction | undefined) => (transaction ? `the oldest reported ${age(transaction)} ago` : 'none waits');
const age = ({ updatedAt }: Transaction) => lasting(updatedAt ?? '', new Date().toISOString());

function tiles({ since }: { since: string }) {
  const filters = { ...filtersOf({}), ERROR: { status: 'ERROR' as const, updatedSince: since } };
  return Promise.all([ask(TransactionCountsDocument, filters), longest({}, ['IN_PROGRESS'], 1), longest({}, ['PENDING_RECEIPT'], 1)]);
}

/** Four numbers, each a link to the list of what it counts. */
function Tiles({ round }: { round: number }) {
  const since = midnight();
  const asked = useAsk(tiles, { since }, round);
  return html`<${Answer} asked=${asked}>${([counts, [inProgress], [waiting]]: Awaited<ReturnType<typeof tiles>>) => {
    const tile = (label: string, note: string, part: Part, query: Record<string, string> = {}) =>
      html`<a class="tile" href=${linkTo(['transactions'], { status: part, ...query })}><span>${label}</span><b>${countOf(counts, [part])}</b>
        <span class="muted">${note}</span></a>`;
    const started = counts.STARTED.totalCount === 0 ? '' : `; ${countOf(counts, ['STARTED'])} more started`;
    return html`<div class="tiles">
      ${tile('In progress', `${oldest(inProgress)}${started}`, 'IN_PROGRESS')}
      ${tile('Failed today', 'since midnight', 'ERROR', { since })}
      ${tile('Waiting for a receipt', oldest(waiting), 'PENDING_RECEIPT')}
      ${tile('Conflicts', 'reported as done and as failed', 'CONFLICT')}
    </div>`;
  }}<//>`;
}

type Stat = TransactionStatsQuery['transactionStats'][number];

/** The transactions of the last 24 hours by the hour of their last report. */
function ByHour({ round }: { round: number }) {
  const end = (Math.floor(Date.now() / HOUR_MS) + 1) * HOUR_MS;
  const times = Array.from({ length: HOURS }, (_, at) => new Date(end - (HOURS - at) * HOUR_MS).toISOString());
  const asked = useAsk(TransactionStatsDocument, { since: times[0] ?? '', until: new Date(end).toISOString() }, round);
  const values = (stats: readonly Stat[], is: (status: Stat['status']) => boolean) =>
    times.map((time) => stats.reduce((sum, { at, status, count }) => sum + (at === time && is(status) ? count : 0), 0));
  return html`<section class="card"><${Answer} asked=${asked}>${({ transactionStats: stats }: TransactionStatsQuery) => html`<${Chart}
    label="Last 24 hours, by hour of the last report" times=${times} linkOf=${(at: number) => linkTo(['transactions'], { since: times[at], until: times[at + 1] ?? new Date(end).toISOString() })} series=${[
      { label: 'Done', tone: 'good', values: values(stats, (status) => status === 'DONE') },
      { label: 'Failed', tone: 'bad', values: values(stats, (status) => status === 'ERROR') },
      { label: 'Open', tone: 'busy', values: values(stats, (status) => status !== 'DONE' && status !== 'ERROR') },
    ]} />`}<//></section>`;
}

type Group = AttentionQuery['needsAttention'][number];
type Kind = Group['kind'];

/** What each kind is called and where its own page is, the most urgent first. */
const KINDS: Readonly<Record<Kind, readonly [tone: 'bad' | 'busy', badge: string]>> = {
  CONFLICT: ['bad', 'Conflict'],
  FAILED: ['bad', 'Failed'],
  STUCK: ['busy', 'Stuck'],
  LOCKED: ['busy', 'Locked'],
  MIGRATION: ['bad', 'Import'],
  QUOTA: ['busy', 'Quota'],
};
const ORDER = Object.keys(KINDS);
const inOrder = (a: Group, b: Group) =>
  ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || (a.kind === 'STUCK' ? a.since.localeCompare(b.since) : b.count - a.count);

/** The statuses by the codes that stuck transactions are grouped by. */
const STUCK_IN: Readonly<Record<string, readonly [Part, string]>> = {
  1: ['STUCK_STARTED', 'started'],
  2: ['STUCK_IN_PROGRESS', 'in progress'],
  5: ['STUCK_PENDING_RECEIPT', 'waiting for a receipt'],
};

function Title({ of: { kind, reason, count, ids } }: { of: Group }): Content {
  const name = useName(actors, kind === 'QUOTA' ? (ids[0] ?? '') : '');
  if (kind === 'FAILED') return `${count} × ${reason || 'no reason was reported'}`;
  if (kind === 'STUCK') return `${count} × ${STUCK_IN[reason ?? '']?.[1]} for over an hour`;
  if (kind === 'CONFLICT') return `${count} × reported as done and as failed`;
  if (kind === 'LOCKED') return `${reason} cannot sign in`;
  return kind === 'QUOTA'
    ? `${name ?? 'A client'} has used ${reason} requests of the month`
    : count === 0
      ? 'An import could not continue'
      : `${counted(count, 'row')} failed`;
}

const keyOf = ({ kind, reason, ids: [id] }: Group) => `${kind} ${kind === 'QUOTA' || kind === 'MIGRATION' ? id : (reason ?? '')}`;

/** What needs a decision, by kind and reason, below it what somebody has seen; a group opens beside the list. */
function Attention({ asked, open }: { asked: Asked<AttentionQuery>; open: Group | undefined }) {
  const item = (group: Group) => {
    const [tone, badge] = KINDS[group.kind];
    const link = linkTo(['overview'], { group: group === open ? '' : keyOf(group) });
    return html`<li key=${keyOf(group)}><a href=${link} aria-current=${group === open ? 'true' : undefined}><${Badge} tone=${tone}>${badge}<//>
      <span><${Title} of=${group} /></span><span class="muted">since ${clock(group.since)}</span></a></li>`;
  };
  const list = (label: string, groups: readonly Group[]) => html`<ul class="concerns" aria-label=${label}>${[...groups].sort(inOrder).map(item)}</ul>`;
  return html`<${Answer} asked=${asked}>${({ needsAttention, walletRules, flagged }: AttentionQuery) => {
    const { seen = [], fresh = [] } = Object.groupBy(needsAttention, (group) => (group.seen ? 'seen' : 'fresh'));
    return html`${fresh.length === 0 ? html`<${Empty} icon="check">Nothing needs attention.<//>` : list('What needs a decision', fresh)}
    ${seen.length > 0 && html`<details class="changed" open=${open?.seen ? true : undefined}><summary>${counted(seen.length, 'group')} seen</summary>${list('Seen', seen)}</details>`}
    ${flagged && flagged.totalCountAtLeast > 0 && html`<p><a href=${linkTo(['transactions'], { status: 'FLAGGED' })}>${counted(flagged.totalCountAtLeast, 'transaction')} of an unknown type</a></p>`}${walletRules && walletRules.edges.length > 0 && html`<${Changed} rules=${nodesOf(walletRules)} />`}`;
  }}<//>`;
}

type Rule = NonNullable<AttentionQuery['walletRules']>['edges'][number]['node'];
const RULES: readonly Column<Rule>[] = [
  { title: 'Rule', cell: ({ walletId, id, name }) => html`<a href=${linkTo(['wallets', walletId, 'rules', id], { history: 'open' })}>${name || id}</a>` },
  { title: 'What', cell: ({ version }) => (version > 1 ? 'Changed' : 'New') },
  { title: 'By', cell: ({ versions }) => html`<${Named} source=${actors} id=${nodesOf(versions)[0]?.subject ?? ''} />` },
  { title: 'When', cell: ({ updatedAt }) => html`<${Time} at=${updatedAt} isAbsolute />` },
];

function Changed({ rules }: { rules: readonly Rule[] }) {
  return html`<details class="changed"><summary>${counted(rules.length, 'rule')} changed since yesterday</summary>
    <${Table} label="Changed rules" columns=${RULES} rows=${rules.toSorted((one, other) => other.updatedAt.localeCompare(one.updatedAt))} /></details>`;
}

const SHOWN = 20;

/** Reads the transactions of a group: the latest failed ones, and those that are stuck the longest. */
async function transactionsOf({ kind, reason }: Pick<Group, 'kind' | 'reason'>): Promise<Transaction[]> {
  const [part] = STUCK_IN[reason ?? ''] ?? [];
  if (kind === 'STUCK') return part ? longest({}, [part], SHOWN) : [];
  const filter = kind === 'CONFLICT' ? { conflict: true } : { status: 'ERROR' as const, error: reason, updatedSince: dayAgo() };
  return nodesOf((await ask(TransactionsDocument, { filter, last: SHOWN })).transactions).reverse();
}
const dayAgo = () => new Date((Math.floor(Date.now() / 60_000) - 24 * 60) * 60_000).toISOString();

const TRANSACTIONS: readonly Column<Transaction>[] = [
  { title: 'Transaction', cell: (row) => html`<${Id} id=${row.id} link=${linkTo(['transactions', row.id])} />` },
  { title: 'Type', cell: typeWords },
  { title: 'Reported', cell: ({ updatedAt }) => html`<${Time} at=${updatedAt} />` },
];

/** A group beside the list: its transactions, or what is known about the one thing that it has. */
function GroupPane({ of, onMarked }: { of: Group; onMarked: () => void }) {
  const { kind, reason, count, since, ids } = of;
  const [id = ''] = ids;
  const isTransactions = kind === 'FAILED' || kind === 'STUCK' || kind === 'CONFLICT';
  const asked = useAsk(transactionsOf, isTransactions ? { kind, reason } : undefined, Date.parse(since) + count);
  const attempts = useAttempts(kind === 'LOCKED' && may('audit:read') ? id : undefined);
  const all = { FAILED: { status: 'ERROR', error: reason ?? '', since: dayAgo() }, STUCK: { status: 'STUCK' }, CONFLICT: { status: 'CONFLICT' } } as const;
  const places: Partial<Record<Kind, string>> = { LOCKED: linkTo(['supervisors', id]), QUOTA: linkTo(['clients', id]), MIGRATION: linkTo(['migrations', id]) };
  const link = isTransactions ? linkTo(['transactions'], all[kind]) : (places[kind] ?? '');
  const heading = useRef<HTMLHeadingElement>(null);
  // Who opens it in the list goes on here, and back to the list when it is closed; the heading has the focus of a new page.
  useEffect(() => {
    const from = document.activeElement as HTMLElement;
    if (from.tagName === 'H1') return;
    heading.current?.focus();
    // A link that was moved in the list meanwhile has lost the focus, so that nothing may have had it.
    const entry = `.concerns a[href="${CSS.escape(linkTo(['overview'], { group: keyOf(of) }))}"]`;
    return () => void setTimeout(() => restoreFocus(document.querySelector<HTMLElement>(entry) ?? from));
  }, []);
  const waits = asked.data?.[0] && kind === 'STUCK' && html`<p>The oldest waits for ${waitsFor(asked.data[0])}.</p>`;
  return html`<section class="card" aria-label="Group">
    <div class="head"><h2 ref=${heading} tabindex="-1"><${Title} of=${of} /></h2><span class="actions"><${CopyLink} /><a class="button quiet" href=${linkTo(['overview'])} aria-label="Close the group"><${Icon} name="close" /></a></span></div>
    <p class="muted">Since <${Time} at=${since} isAbsolute /></p>
    ${attempts.data && html`<p><${AttemptsLine} subject=${id} of=${attempts.data} /></p>`}${waits}
    ${isTransactions && html`<${Answer} asked=${asked}>${(rows: Transaction[]) => html`<${Table} label="Transactions of the group" columns=${TRANSACTIONS} rows=${rows} linkOf=${({ id }: Transaction) => linkTo(['transactions', id])} />`}<//>`}
    <p class="actions"><a class="button" href=${link}>${isTransactions ? 'Open the list' : 'Open'}</a></p>
    <${Mark} of=${of} onMarked=${onMarked} />
  </section>`;
}

/** Marks a group as seen for all people of the tenant, or says who has. */
function Mark({ of: { id, kind, marking, seen }, onMarked }: { of: Group; onMarked: () => void }) {
  const [note, setNote] = useState('');
  const action = useAction();
  const mark = (isSeen: boolean) => async () => {
    await mutate(MarkSeenDocument, { kind, id, seen: isSeen, note: note.trim() || null }).finally(onMarked);
    toast(isSeen ? 'Marked as seen.' : 'It needs attention again.');
  };
  if (!may(marking)) return html`${seen && html`<${SeenBy} of=${seen} />`}<${Needs} permission=${marking} to="mark it as seen" />`;
  if (seen) {
    return html`<${SeenBy} of=${seen} /><${FailureBox} failure=${action.failure} />
      <p class="actions"><button type="button" disabled=${action.isBusy} onClick=${() => action.run(mark(false))}>Mark as not seen</button></p>`;
  }
  return html`<${Form} ...${action} verb="Mark as seen" act=${mark(true)}>
    <${Input} label="Note for colleagues" hint="May be empty. It comes back when something new joins it." maxlength="1024" value=${note} onInput=${setNote} /><//>`;
}

const SeenBy = ({ of: { seenBy: by, seenAt: at, note } }: { of: NonNullable<Group['seen']> }) =>
  html`<p>Seen by <${Named} source=${actors} id=${by} /> <${Time} at=${at} />${note && html`: <q>${note}</q>`}</p>`;
