import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, mutate } from '../api.ts';
import { CancelUserMigrationDocument, MigrationRowsDocument, type MigrationRowsQuery, MigrationsDocument, RejectedRowsDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { type Column, List, nodesOf, saveFile, Tabs, usePages } from '../kit/list.ts';
import { ConfirmButton, toast } from '../kit/overlay.ts';
import { Answer, Empty, FailureBox, Found, may, Needs, Page, useAction, usePolling } from '../kit/page.ts';
import { Named } from '../kit/picker.ts';
import { actors } from '../kit/sources.ts';
import { absolute, Badge, counted, Facts, Id, Time, words } from '../kit/text.ts';
import { linkTo, place, setQuery } from '../router.ts';
import { copyOf, guessedFieldsOf } from './csv.ts';
import { CHOSEN, Choose, CORRECTABLE, Correct, check, type FileRow, ImportPage, send, unreadable } from './import.ts';

type MigrationAndRows = NonNullable<MigrationRowsQuery['migration']>;
type Migration = Omit<MigrationAndRows, 'list'>;
type Row = MigrationAndRows['list']['edges'][number]['node'];

const TONES: Readonly<Record<string, 'good' | 'bad' | 'busy'>> = {
  RUNNING: 'busy',
  DONE: 'good',
  FAILED: 'bad',
  created: 'good',
  skipped: 'busy',
  failed: 'bad',
};
const REASONS: Readonly<Record<string, string>> = {
  missing_email_and_external_id: 'No email and no external id',
  duplicate_email: 'Email already used',
  duplicate_external_id: 'External id already used',
  duplicate_wallet: 'Wallet address already used',
};
const ENDS: Readonly<Record<string, string>> = { FAILED: 'It could not continue', CANCELLED: 'It was cancelled' };

/** Returns a reason in words; of a failed row it begins with the line, which the row's number says already. */
function reasonOf(reason: string | null | undefined): string {
  const said = (reason ?? '').replace(/^line \d+: /, '').replace(/^kyc_/, 'KYC ');
  const text = said.replace(/^(wallet|external)_/, '$1 ');
  return REASONS[reason ?? ''] ?? text.charAt(0).toUpperCase() + text.slice(1);
}

const Status = ({ status, dryRun }: { status: string; dryRun?: boolean }) =>
  html`<${Badge} tone=${TONES[status] ?? ''}>${dryRun && status === 'created' ? 'Would be created' : words(status)}<//>`;

/** Returns what a migration is called: its file or its rows, and the time of its start, which tells it from the others. */
const titleOf = ({ dryRun, fileName, total, createdAt }: Migration) =>
  `${dryRun ? 'Check' : 'Import'}: ${fileName ?? counted(total, 'row')}, ${absolute(createdAt)}`;

const COLUMNS: readonly Column<Migration>[] = [
  { title: 'Import', cell: (row) => html`<a href=${linkTo(['migrations', row.id])}>${titleOf(row)}</a>` },
  { title: 'By', cell: ({ createdBy }) => html`<${Named} source=${actors} id=${createdBy} />` },
  { title: 'Begun', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
  { title: 'Status', cell: ({ status, dryRun }) => html`<${Status} status=${status} /> ${dryRun && html`<${Badge}>Check only<//>`}` },
  { title: 'Rows', cell: ({ total }) => total.toLocaleString('en'), isNumber: true },
  { title: 'Created', cell: ({ success, dryRun }) => (dryRun ? 0 : success).toLocaleString('en'), isNumber: true },
  { title: 'Skipped', cell: ({ skipped }) => skipped.toLocaleString('en'), isNumber: true },
  { title: 'Failed', cell: ({ failed }) => failed.toLocaleString('en'), isNumber: true },
];

export function show(id?: string) {
  if (id === 'new') return html`<${ImportPage} />`;
  return id === undefined ? html`<${MigrationsPage} />` : html`<${MigrationPage} key=${id} id=${id} />`;
}

function MigrationsPage() {
  const asked = usePages(MigrationsDocument, {});
  const isRunning = asked.data?.migrations.edges.some(({ node }) => node.status === 'RUNNING');
  usePolling(asked, isRunning);
  const link = may('users:migrate') && html`<a class="button primary" href=${linkTo(['migrations', 'new'])}>Import users</a>`;
  return html`<${Page} title="User migrations" actions=${link}>
    <${Needs} permission="users:migrate" to="import users" />
    <${Answer} asked=${asked}>${({ migrations }: NonNullable<typeof asked.data>) =>
      html`<${List} label="User migrations" noun="migrations" of=${migrations} pages=${asked.pages} columns=${COLUMNS}
        linkOf=${({ id }: Migration) => linkTo(['migrations', id])} empty=${html`<${Empty} icon="imports" next=${link}>No user migrations yet. Import users from a spreadsheet.<//>`} />`}<//>
  <//>`;
}

/** How the rows have come out so far, as a bar of three colours and in words. */
function Outcome({ migration: { total, success, skipped, failed, dryRun } }: { migration: Migration }) {
  const parts = [
    ['good', success, dryRun ? 'would be created' : 'created'],
    ['busy', skipped, 'skipped'],
    ['bad', failed, 'failed'],
  ] as const;
  const done = success + skipped + failed;
  return html`<div class="outcome" role="progressbar" aria-label="Rows with an outcome" aria-valuemin="0" aria-valuemax=${total} aria-valuenow=${done}>
      ${parts.map(([tone, count]) => html`<i class=${`swatch ${tone}`} style=${{ flexGrow: count }}></i>`)}<i style=${{ flexGrow: total - done }}></i></div>
    <p>${done.toLocaleString('en')} of ${counted(total, 'row')}: ${parts.map(([tone, count, word]) => html`<span><i class=${`swatch ${tone}`}></i>${count.toLocaleString('en')} ${word} </span>`)}</p>`;
}

const rowColumns = (dryRun: boolean): readonly Column<Row>[] => [
  { title: 'Line', cell: ({ index }) => index + 1, isNumber: true },
  { title: 'Outcome', cell: ({ status }) => html`<${Status} status=${status} dryRun=${dryRun} />` },
  { title: 'Reason', cell: ({ reason, warning }) => reasonOf(reason ?? warning) },
  { title: 'Email', cell: ({ email }) => email },
  { title: 'External id', cell: ({ externalId }) => externalId },
  { title: 'User', cell: ({ userId }) => html`<${Id} id=${userId} link=${userId ? linkTo(['users', userId]) : undefined} />` },
];

function MigrationPage({ id }: { id: string }) {
  const isAll = place.value.query.get('rows') === 'all';
  const asked = usePages(isAll ? MigrationRowsDocument : RejectedRowsDocument, { id });
  const current = asked.data?.migration;
  const isRunning = current?.status === 'RUNNING';
  usePolling(asked, isRunning);
  const { run, isBusy, failure } = useAction();
  const cancel = async () => {
    await mutate(CancelUserMigrationDocument, { id });
    asked.reload();
    toast('Migration cancelled.');
  };
  const file = CHOSEN.get(id);
  const mayAct = may('users:migrate');
  const rejected = current ? current.skipped + current.failed : 0;
  const canImport = file && current?.dryRun && !isRunning;
  const actions = html`${
    isRunning &&
    mayAct &&
    html`<${ConfirmButton} title="Cancel this migration?" verb="Cancel migration" keep="Continue migration" act=${cancel}>
      <p>Users already created are kept: ${counted(current.success, 'user')} so far, and any created before it stops.</p>
      <p>The other rows are not migrated. To migrate them later, import the same file again: rows already migrated are skipped.</p><//>`
  }
    ${canImport && mayAct && html`<button type="button" class=${rejected ? '' : 'primary'} disabled=${isBusy} onClick=${() => run(() => send(file, false))}>${rejected ? 'Import the other rows' : `Import ${counted(current.total, 'user')}`}</button>`}`;
  const title = current ? titleOf(current) : 'User migration';
  return html`<${Page} title=${title} trail=${[{ text: 'User migrations', link: linkTo(['migrations']) }]} actions=${actions}>
    <${Needs} permission="users:migrate" to="cancel a migration or correct its rows" />
    <${FailureBox} failure=${failure} />
    <${Found} asked=${asked} noun="user migration">${(migration: MigrationAndRows) => {
      const { status, success, createdAt, finishedAt, createdBy, dryRun } = migration;
      const tabs = [
        ['', dryRun ? 'Would not be created' : 'Not created', rejected],
        ['all', 'All rows', success + rejected],
      ];
      return html`
        <p class="link" role="status"><${Status} status=${status} /> ${dryRun && 'This was a check: nothing is saved.'}</p>
        <${Outcome} migration=${migration} />
        ${status in ENDS && html`<p class="warning">${ENDS[status]}: users created so far are kept, and later rows have no outcome.</p>`}
        ${!isRunning && rejected > 0 && mayAct && html`<${Corrections} migration=${migration} file=${file} />`}
        <h2>Rows</h2>
        <${Tabs} label="Rows" tabs=${tabs} value=${isAll ? 'all' : ''} onChange=${(rows: string) => setQuery({ rows })} />
        <${List} label="Rows" of=${migration.list} pages=${asked.pages} columns=${rowColumns(dryRun)} keyOf=${({ index }: Row) => index} empty=${isAll ? 'No row has an outcome.' : dryRun ? 'Every row would create a user.' : 'Every row has created a user.'} />
        <${Facts} of=${[
          ['Begun', html`<${Time} at=${createdAt} />`],
          ['Ended', finishedAt && html`<${Time} at=${finishedAt} />`],
          ['Started by', html`<${Named} source=${actors} id=${createdBy} />`],
          ['Id', html`<${Id} id=${id} />`],
        ]} />`;
    }}<//>
  <//>`;
}

/** The rows that created no user: to correct here, or to download. The server does not keep the file. */
function Corrections({ migration: { id, total, skipped, failed, dryRun }, file }: { migration: Migration; file: File | undefined }) {
  const [shown, setShown] = useState<{ columns: string[]; rows: FileRow[] }>();
  const [given, setGiven] = useState(file);
  const { run, isBusy, failure } = useAction();
  const leaving = useRef(new AbortController());
  useEffect(() => () => leaving.current.abort(), []);
  const find = async (from: File) => {
    const found = new Map<number, string>();
    for (let after: string | null | undefined, isLast = false; !isLast; ) {
      const { migration } = await ask(RejectedRowsDocument, { id, first: 100, after: after ?? null }, { signal: leaving.current.signal });
      if (!migration) throw new Error('The migration no longer exists.');
      for (const { index, reason } of nodesOf(migration.list)) found.set(index, reasonOf(reason));
      after = migration.list.pageInfo.endCursor;
      isLast = !migration.list.pageInfo.hasNextPage;
    }
    const rows: FileRow[] = [];
    let columns: string[] = [];
    const { copy, rows: count } = await copyOf(from, (index, bytes) => {
      if (index === 0) columns = guessedFieldsOf(bytes);
      if (found.has(index)) rows.push({ index, fields: guessedFieldsOf(bytes), reason: found.get(index) });
      return found.has(index);
    }).catch(unreadable);
    if (count !== total) throw new Error(`This is not the file of the migration: it has ${counted(count, 'row')}, and the migration has ${total}.`);
    return { copy, rows, columns };
  };
  const take = (from: File) => {
    CHOSEN.set(id, from);
    setGiven(from);
  };
  const count = skipped + failed;
  if (!given) return html`<${Choose} label="Correct rows: choose the file again" take=${take}><p>The server does not keep the file of a migration.</p><//>`;
  const correct = () => run(() => find(given).then(setShown));
  const save = () => run(() => find(given).then(({ copy }) => saveFile(copy, `${given.name.replace(/\.csv$/i, '')}-to-correct.csv`)));
  return html`<section class="card" aria-label="Rows to correct"><h2>${counted(count, 'row')} to correct</h2>
    <${FailureBox} failure=${failure} />
    ${
      shown
        ? html`<${Correct} ...${shown} file=${given} keepsOthers=${dryRun} onDone=${check} />`
        : html`<p class="actions">
      ${count <= CORRECTABLE && html`<button type="button" class="primary" disabled=${isBusy} onClick=${correct}>Correct here</button>`}
      <button type="button" disabled=${isBusy} onClick=${save}>Download these rows</button></p>
      <p class="muted">Or correct the download in your spreadsheet program, and import that file. A row whose user exists already needs no correction.</p>`
    }
  </section>`;
}
