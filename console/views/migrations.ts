import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, type Failure, follow, type Link, resultOf } from '../api.ts';
import {
  CancelUserMigrationDocument,
  type MigrationPartsFragment as Migration,
  MigrationProgressDocument,
  MigrationRowsDocument,
  type MigrationRowsQuery,
  MigrationsDocument,
  StartUserMigrationDocument,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Field } from '../kit/form.ts';
import { type Column, List, nodesOf, type Pages, Table, usePages } from '../kit/list.ts';
import { Confirm } from '../kit/overlay.ts';
import { Answer, Empty, FailureBox, may, Page, useAction } from '../kit/page.ts';
import { Badge, Facts, Id, LinkBadge, Time } from '../kit/text.ts';
import { onSignOut } from '../remembered.ts';
import { go, linkTo } from '../router.ts';
import { cutRecords } from './csv.ts';

type Row = NonNullable<MigrationRowsQuery['migration']>['rows']['edges'][number]['node'];

/** The files that were chosen in this session, by the ids of their migrations. */
const CHOSEN = new Map<string, File>();
onSignOut(() => CHOSEN.clear());

const COLUMNS = ['email', 'external_id', 'name', 'surname', 'kyc_sent'];
const TONES: Readonly<Record<string, 'good' | 'bad' | 'busy'>> = { RUNNING: 'busy', DONE: 'good', FAILED: 'bad', created: 'good', failed: 'bad' };
const RELOAD_MS = 2_000;
/** How many of the rows that failed or were skipped are shown at most. */
const SHOWN = 200;

function unreadable(): never {
  throw new Error('The file cannot be read: it was moved or changed, or is a folder. Choose it again.');
}

/** The status of a migration, or of a row of one. */
function Status({ status }: { status: string }) {
  return html`<${Badge} tone=${TONES[status] ?? ''}>${status.toLowerCase()}<//>`;
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

const LIST_COLUMNS: readonly Column<Migration>[] = [
  { title: 'Begun', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} link=${linkTo(['migrations', id])} />` },
  { title: 'Status', cell: ({ status }) => html`<${Status} status=${status} />` },
  { title: 'Rows', cell: ({ total }) => total, isNumber: true },
  { title: 'Created', cell: ({ success }) => success, isNumber: true },
  { title: 'Skipped', cell: ({ skipped }) => skipped, isNumber: true },
  { title: 'Failed', cell: ({ failed }) => failed, isNumber: true },
];

export function show(id?: string) {
  return id === undefined ? html`<${MigrationsPage} />` : html`<${MigrationPage} key=${id} id=${id} />`;
}

/** The user migrations of the node, and how to start one. */
function MigrationsPage() {
  const asked = usePages(MigrationsDocument, {});
  const isRunning = asked.data?.migrations.edges.some(({ node }) => node.status === 'RUNNING');
  useEffect(() => {
    const timer = isRunning ? setTimeout(asked.reload, RELOAD_MS) : undefined;
    return () => clearTimeout(timer);
  }, [asked.data, asked.failure]);
  return html`<${Page} title="User migrations">
    ${may('users:migrate') ? html`<${Start} />` : html`<p class="muted">To start one, you need the permission <code>users:migrate</code>. Ask your administrator for it.</p>`}
    <h2>Past migrations</h2>
    <${Answer} asked=${asked}>${({ migrations }: NonNullable<typeof asked.data>) =>
      html`<${List} label="User migrations" noun="migrations" of=${migrations} pages=${asked.pages} columns=${LIST_COLUMNS}
        keyOf=${({ id }: Migration) => id} empty="No user migrations yet. A migration appears here when it is started." />`}<//>
  <//>`;
}

/** Chooses a file, by its input or by dropping it anywhere onto the page, and starts its migration. */
function Start() {
  const input = useRef<HTMLInputElement>(null);
  const [file, setFile] = useState<File>();
  const [isOver, setOver] = useState(false);
  const [issue, setIssue] = useState<string>();
  const { run, isBusy, failure, setFailure } = useAction();
  const leaving = useRef(new AbortController());
  const { signal } = leaving.current;
  const choose = (files: FileList | null | undefined) => {
    setFailure(undefined);
    setIssue(files && files.length > 1 ? 'Each migration takes one file. Drop one file at a time.' : undefined);
    setFile(files?.length === 1 ? files[0] : undefined);
  };
  const drag = (event: DragEvent) => {
    event.preventDefault();
    setOver(event.type === 'dragover');
    const files = event.type === 'drop' && event.dataTransfer?.files;
    if (!files || files.length === 0 || !input.current || input.current.disabled) return;
    input.current.files = files;
    choose(files);
  };
  useEffect(() => {
    for (const type of ['dragover', 'dragleave', 'drop'] as const) addEventListener(type, drag, { signal });
    return () => leaving.current.abort();
  }, []);
  const start = (event: Event) => {
    event.preventDefault();
    if (!file) return setIssue('Choose a file first.');
    void run(async () => {
      await file.slice(0, 1).arrayBuffer().catch(unreadable);
      const { result } = await ask(StartUserMigrationDocument, { file: null }, { file, signal });
      const { id } = resultOf(result);
      if (signal.aborted) return;
      CHOSEN.set(id, file);
      go(linkTo(['migrations', id]));
    });
  };
  const chosen = file && `${file.name}, ${counted(file.size, 'byte')}`;
  return html`<form class=${`card drop ${isOver ? 'over' : ''}`} aria-label="Start a user migration" onSubmit=${start}>
    <${Field} label="CSV file of users" hint="Choose a file, or drop one anywhere on this page." issue=${issue}>${(described: object) =>
      html`<input ...${described} ref=${input} type="file" accept=".csv,text/csv" disabled=${isBusy} onChange=${() => choose(input.current?.files)} />`}<//>
    <p>Its first line names the columns: <code>wallet_address</code> and any of ${COLUMNS.map((name) => html`<code>${name}</code> `)}in any order, separated by commas, in UTF-8. A row needs an email or an external id; <code>kyc_sent</code> is <code>true</code> or <code>false</code>.</p>
    <${FailureBox} failure=${failure} />
    <p class="actions"><button type="submit" class="primary" disabled=${isBusy}>Start the migration</button>
      <span role="status">${isBusy ? `Sending ${chosen} … Leaving this page stops it.` : chosen}</span></p>
  </form>`;
}

/** Follows a migration until it ends. An interrupted stream starts again with the current state. */
function useProgress(id: string, isRunning: boolean, onStep: (isDone: boolean) => void) {
  const [now, setNow] = useState<Migration>();
  const [link, setLink] = useState<Link>({ state: 'connecting' });
  const [failure, setFailure] = useState<Failure>();
  const [wasCut, setCut] = useState(false);
  const step = useRef(onStep);
  step.current = onStep;
  useEffect(() => {
    if (!isRunning || failure) return;
    return follow({
      operation: MigrationProgressDocument,
      variables: () => ({ id }),
      onLink: (next) => {
        setLink(next);
        setCut((before) => before || next.state === 'waiting');
      },
      onNext: ({ migrationProgress: { migration, done } }) => {
        setNow(migration);
        step.current(done);
      },
      onFailure: setFailure,
    });
  }, [id, isRunning, failure]);
  return { now, setNow, link, failure, wasCut, retry: () => setFailure(undefined) };
}

const ROW_COLUMNS: readonly Column<Row>[] = [
  { title: 'Row', cell: ({ index }) => index, isNumber: true },
  { title: 'Status', cell: ({ status }) => html`<${Status} status=${status} />` },
  { title: 'Reason', cell: ({ reason }) => reason ?? '–' },
  { title: 'Email', cell: ({ email }) => email ?? '–' },
  { title: 'External id', cell: ({ externalId }) => externalId ?? '–' },
  { title: 'User', cell: ({ userId }) => html`<${Id} id=${userId} />` },
];

/** One migration: its progress, what became of its rows, and what to correct. */
function MigrationPage({ id }: { id: string }) {
  const asked = usePages(MigrationRowsDocument, { id });
  const first = asked.data?.migration;
  const { now, setNow, link, failure, wasCut, retry } = useProgress(id, first?.status === 'RUNNING', (isDone) => {
    if (isDone || !first?.rows.pageInfo.hasNextPage) asked.reload();
  });
  const [isAsking, setAsking] = useState(false);
  const isRunning = (now ?? first)?.status === 'RUNNING';
  const cancel = async () => {
    const { result } = await ask(CancelUserMigrationDocument, { id });
    setNow(resultOf(result));
    asked.reload();
  };
  const actions = may('users:migrate')
    ? html`<button type="button" onClick=${() => setAsking(true)}>Cancel the migration</button>`
    : html`<span class="muted">To cancel it, you need the permission <code>users:migrate</code>.</span>`;
  return html`<${Page} title="User migration" trail=${[{ text: 'User migrations', link: linkTo(['migrations']) }]} actions=${isRunning && actions}>
    <${Answer} asked=${asked}>${({ migration: read }: NonNullable<typeof asked.data>) => {
      if (!read) return html`<${Empty}>There is no user migration with this id, or it belongs to another tenant.<//>`;
      const migration = now ?? read;
      const { status, success, skipped, failed, total, createdAt, finishedAt, createdBy } = migration;
      const processed = success + skipped + failed;
      return html`
        <p class="link" role="status"><${Status} status=${status} /> ${isRunning && html`<${LinkBadge} link=${link} />`}
          ${isRunning && wasCut && link.state === 'live' && ' Reconnected. The progress is up to date.'}</p>
        <${FailureBox} failure=${failure} retry=${retry} />
        <label class="field"><span>${processed.toLocaleString('en')} of ${counted(total, 'row')} with an outcome</span>
          <progress max=${total || 1} value=${total === 0 ? 1 : processed}></progress></label>
        ${(status === 'FAILED' || status === 'CANCELLED') && html`<p class="warning">${status === 'FAILED' ? 'It could not continue' : 'It was cancelled'}: the users created so far are kept, and the rows after row ${processed.toLocaleString('en')} have no outcome.</p>`}
        <${Facts} of=${[
          ['Users created', success.toLocaleString('en')],
          ['Rows skipped', skipped.toLocaleString('en')],
          ['Rows failed', failed.toLocaleString('en')],
          ['Begun', html`<${Time} at=${createdAt} />`],
          ['Ended', finishedAt ? html`<${Time} at=${finishedAt} />` : 'Not yet'],
          ['Started by', html`<code>${createdBy}</code>`],
          ['Id', html`<code>${migration.id}</code>`],
        ]} />
        <${Rows} migration=${migration} rows=${read.rows} pages=${asked.pages} />
        ${
          isAsking &&
          html`<${Confirm} title="Cancel this migration?" verb="Cancel the migration" act=${cancel} onClose=${() => setAsking(false)}>
          <p>Users already created are kept: ${counted(success, 'user')} so far, and any created before it stops.</p>
          <p>The other rows are not migrated, and the migration cannot be continued. To migrate the rest later, migrate the same file again: rows already migrated are skipped.</p><//>`
        }`;
    }}<//>
  <//>`;
}

type RowsInput = { migration: Migration; rows: NonNullable<MigrationRowsQuery['migration']>['rows']; pages: Pages };

/**
 * The rows of a migration. Once it has ended: only failed or skipped rows on request, and a file of the failed ones.
 */
function Rows({ migration: { id, status, total, success, skipped, failed }, rows, pages }: RowsInput) {
  const [bad, setBad] = useState<readonly Row[]>();
  const [notice, setNotice] = useState('');
  const { run, isBusy, failure } = useAction();
  const leaving = useRef(new AbortController());
  useEffect(() => () => leaving.current.abort(), []);
  const file = CHOSEN.get(id);
  const hasBad = status !== 'RUNNING' && failed + skipped > 0;
  const find = async () => {
    const found: Row[] = [];
    const variables = { id, first: 100, after: null as string | null };
    for (let looked = 0, isAll = false; !isAll; ) {
      const { migration } = await ask(MigrationRowsDocument, variables, { signal: leaving.current.signal });
      if (!migration) throw new Error('The migration no longer exists.');
      const { edges, pageInfo } = migration.rows;
      found.push(...nodesOf(migration.rows).filter((row) => row.status !== 'created'));
      looked += edges.length;
      setNotice(`Searched ${looked.toLocaleString('en')} of ${counted(success + skipped + failed, 'row')}`);
      variables.after = pageInfo.endCursor;
      isAll = !pageInfo.hasNextPage;
    }
    return found;
  };
  const showBad = async () => {
    const found = await find();
    setBad(found);
    setNotice(found.length > SHOWN ? `The first ${SHOWN} of ${found.length.toLocaleString('en')}` : '');
  };
  const save = async (from: File) => {
    const wanted = (await find()).filter((row) => row.status === 'failed').map(({ index }) => index);
    const parts: Blob[] = [];
    const count = await cutRecords(from, new Set(wanted), (some) => parts.push(new Blob(some))).catch(unreadable);
    if (count !== total) throw new Error(`The file has changed: it has ${counted(count, 'row')}, and the migration ${total}.`);
    const download = `${from.name.replace(/\.csv$/i, '')}-failed-rows.csv`;
    const href = URL.createObjectURL(new Blob(parts, { type: 'text/csv' }));
    Object.assign(document.createElement('a'), { href, download }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
    setNotice(`${download} has ${counted(wanted.length, 'failed row')}, copied from ${from.name}. Correct them, and start a migration with it.`);
  };
  const table = { label: 'Rows', columns: ROW_COLUMNS, keyOf: ({ index }: Row) => index };
  return html`<h2>Rows</h2>
    <p class="muted">Rows are counted from 1 after the header, without empty lines; <code>line N</code> in a reason is the same number.</p>
    <p class="actions">
      ${hasBad && html`<button type="button" disabled=${isBusy} onClick=${() => (bad ? setBad(undefined) : run(showBad))}>${bad ? 'Show all rows' : 'Show failed and skipped only'}</button>`}
      ${hasBad && failed > 0 && (file ? html`<button type="button" disabled=${isBusy} onClick=${() => run(() => save(file))}>Download the failed rows as CSV</button>` : html`<span class="muted">The failed rows can be downloaded only in the session in which the CSV file was chosen, because the server does not keep the file.</span>`)}
      <span role="status">${notice}</span></p>
    <${FailureBox} failure=${failure} />
    ${bad ? html`<${Table} ...${table} rows=${bad.slice(0, SHOWN)} />` : html`<${List} ...${table} of=${rows} pages=${pages} empty="No row has an outcome." />`}`;
}
