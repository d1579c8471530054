import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, Failure, follow, type Link, resultOf } from './api.ts';
import { cutRecords } from './csv.ts';
import {
  CancelUserMigrationDocument,
  type MigrationPartsFragment as Migration,
  MigrationProgressDocument,
  MigrationRowsDocument,
  type MigrationRowsQuery,
  type MigrationStatus,
  MigrationsDocument,
  StartUserMigrationDocument,
} from './generated/graphql.ts';
import { html } from './html.ts';
import { onSignOut } from './remembered.ts';
import { go, linkTo } from './router.ts';
import {
  Answer,
  Badge,
  type Column,
  Confirm,
  Empty,
  Facts,
  FailureBox,
  Field,
  Id,
  LinkBadge,
  may,
  nodesOf,
  Page,
  Pager,
  Table,
  Time,
  useAction,
  useAsk,
  usePages,
} from './ui.ts';

type Row = NonNullable<MigrationRowsQuery['migration']>['rows']['edges'][number]['node'];

/** The files that were chosen in this session, by the ids of their migrations. */
const CHOSEN = new Map<string, File>();
onSignOut(() => CHOSEN.clear());

const COLUMNS = ['wallet_address', 'email', 'external_id', 'name', 'surname', 'kyc_sent'];
const STATUSES: Record<MigrationStatus, readonly [text: string, tone: 'good' | 'bad' | 'busy' | '']> = {
  RUNNING: ['Running', 'busy'],
  DONE: ['Done', 'good'],
  CANCELLED: ['Cancelled', ''],
  FAILED: ['Failed', 'bad'],
};
const RELOAD_MS = 2_000;

function unreadable(): never {
  throw new Failure('The file cannot be read: it was moved or changed, or is a folder. Choose it again.');
}

function MigrationStatusBadge({ status }: { status: MigrationStatus }) {
  const [text, tone] = STATUSES[status];
  return html`<${Badge} tone=${tone}>${text}<//>`;
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

const LIST_COLUMNS: readonly Column<Migration>[] = [
  { title: 'Begun', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} link=${linkTo(['migrations', id])} />` },
  { title: 'Status', cell: ({ status }) => html`<${MigrationStatusBadge} status=${status} />` },
  { title: 'Rows', cell: ({ total }) => total, isNumber: true },
  { title: 'Created', cell: ({ success }) => success, isNumber: true },
  { title: 'Skipped', cell: ({ skipped }) => skipped, isNumber: true },
  { title: 'Failed', cell: ({ failed }) => failed, isNumber: true },
];

/** The user migrations of the node, and how to start one. */
export function MigrationsPage() {
  const pages = usePages('');
  const asked = useAsk(MigrationsDocument, pages.variables);
  const isRunning = asked.data?.migrations.edges.some(({ node }) => node.status === 'RUNNING');
  useEffect(() => {
    const timer = isRunning ? setTimeout(asked.reload, RELOAD_MS) : undefined;
    return () => clearTimeout(timer);
  }, [asked.data]);
  return html`<${Page} title="User migrations">
    ${may('users:migrate') ? html`<${Start} />` : html`<p class="muted">To start one, your sign-in lacks <code>users:migrate</code>: ask whoever manages your role or client for it.</p>`}
    <h2>Migrations until now</h2>
    <${Answer} asked=${asked}>${({ migrations }: NonNullable<typeof asked.data>) => html`
      ${migrations.totalCount === 0 ? html`<${Empty}>No user migration yet. One appears here as soon as it is started.<//>` : html`<${Table} label="User migrations" columns=${LIST_COLUMNS} rows=${nodesOf(migrations)} keyOf=${({ id }: Migration) => id} />`}
      <${Pager} connection=${migrations} pages=${pages} noun="migrations" />`}<//>
  <//>`;
}

/** Chooses a file, by its input or by dropping it anywhere onto the page, and starts its migration. */
function Start() {
  const input = useRef<HTMLInputElement>(null);
  const [file, setFile] = useState<File>();
  const [isOver, setOver] = useState(false);
  const [issue, setIssue] = useState<string>();
  const { run, isBusy, failure, setFailure } = useAction();
  const sending = useRef(new AbortController());
  const choose = (files: FileList | null | undefined) => {
    setFailure(undefined);
    setIssue(files && files.length > 1 ? 'One file is one migration: drop one file at a time.' : undefined);
    setFile(files?.length === 1 ? (files[0] ?? undefined) : undefined);
  };
  useEffect(() => {
    const listening = new AbortController();
    const on = (type: 'dragover' | 'dragleave' | 'drop', act: (event: DragEvent) => void) =>
      addEventListener(
        type,
        (event) => {
          event.preventDefault();
          act(event);
        },
        { signal: listening.signal },
      );
    on('dragover', () => setOver(true));
    on('dragleave', ({ relatedTarget }) => setOver(relatedTarget !== null));
    on('drop', ({ dataTransfer }) => {
      setOver(false);
      if (!dataTransfer?.files.length) return;
      if (input.current) input.current.files = dataTransfer.files;
      choose(dataTransfer.files);
    });
    return () => {
      listening.abort();
      sending.current.abort();
    };
  }, []);
  const start = (event: Event) => {
    event.preventDefault();
    if (!file) {
      setIssue('Choose a file first.');
      return;
    }
    const { signal } = sending.current;
    void run(async () => {
      await file.slice(0, 1).arrayBuffer().catch(unreadable);
      const { result } = await ask(StartUserMigrationDocument, { file: null }, { file, signal });
      const { id } = resultOf(result);
      if (signal.aborted) return;
      CHOSEN.set(id, file);
      go(linkTo(['migrations', id]));
    });
  };
  return html`<form class=${`card drop ${isOver ? 'over' : ''}`} aria-label="Start a user migration" onSubmit=${start}>
    <${Field} label="CSV file of users" hint="Choose a file here, or drop one anywhere onto this page." issue=${issue}>${(described: object) =>
      html`<input ...${described} ref=${input} type="file" accept=".csv,text/csv" disabled=${isBusy} onChange=${() => choose(input.current?.files)} />`}<//>
    <p>Its first line names the columns: <code>wallet_address</code> and any of ${COLUMNS.slice(1).map((name) => html`<code>${name}</code> `)}in any order, with commas between, in UTF-8. A row needs an email or an external id; <code>kyc_sent</code> is <code>true</code> or <code>false</code>.</p>
    <${FailureBox} failure=${failure} />
    <p class="actions"><button type="submit" class="primary" disabled=${isBusy}>Start the migration</button>
      <span role="status">${file && `${isBusy ? 'Sending ' : ''}${file.name}, ${counted(file.size, 'byte')}${isBusy ? ' … Stay on this page until it is sent: leaving stops it.' : ''}`}</span></p>
  </form>`;
}

/** Follows a migration until it ends. A stream that was cut begins anew with the state of that moment. */
function useProgress(id: string, isRunning: boolean, onStep: (isDone: boolean) => void) {
  const [now, setNow] = useState<Migration>();
  const [link, setLink] = useState<Link>({ state: 'connecting' });
  const [failure, setFailure] = useState<Failure>();
  const [wasCut, setCut] = useState(false);
  const [round, setRound] = useState(0);
  const step = useRef(onStep);
  step.current = onStep;
  useEffect(() => {
    if (!isRunning) return;
    setFailure(undefined);
    return follow({
      operation: MigrationProgressDocument,
      variables: () => ({ id }),
      onLink: (next) => {
        setLink(next);
        if (next.state === 'waiting') setCut(true);
      },
      onNext: ({ migrationProgress: { migration, done } }) => {
        setNow(migration);
        step.current(done);
      },
      onFailure: setFailure,
    });
  }, [id, isRunning, round]);
  return { now, setNow, link, failure, wasCut, retry: () => setRound(round + 1) };
}

const ROW_COLUMNS: readonly Column<Row>[] = [
  { title: 'Row', cell: ({ index }) => index, isNumber: true },
  {
    title: 'Status',
    cell: ({ status }) => html`<${Badge} tone=${status === 'created' ? 'good' : status === 'failed' ? 'bad' : ''}>${status}<//>`,
  },
  { title: 'Reason', cell: ({ reason }) => reason ?? html`<span class="muted">–</span>` },
  { title: 'Email', cell: ({ email }) => email ?? html`<span class="muted">–</span>` },
  { title: 'External id', cell: ({ externalId }) => externalId ?? html`<span class="muted">–</span>` },
  { title: 'User', cell: ({ userId }) => html`<${Id} id=${userId} />` },
];

/** One migration: its progress, what became of its rows, and what to correct. */
export function MigrationPage({ id }: { id: string }) {
  const pages = usePages(id);
  const asked = useAsk(MigrationRowsDocument, { id, ...pages.variables });
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
    : html`<span class="muted">To cancel it, your sign-in lacks <code>users:migrate</code>.</span>`;
  const trail = [{ text: 'User migrations', link: linkTo(['migrations']) }];
  return html`<${Page} title="User migration" trail=${trail} actions=${isRunning && actions}>
    <${Answer} asked=${asked}>${({ migration: read }: NonNullable<typeof asked.data>) => {
      if (!read) return html`<${Empty}>There is no user migration with this id, or it belongs to another node.<//>`;
      const migration = now ?? read;
      const { status, success, skipped, failed, total, createdAt, finishedAt, createdBy } = migration;
      const processed = success + skipped + failed;
      return html`
        <p class="link" role="status"><${MigrationStatusBadge} status=${status} /> ${isRunning && html`<${LinkBadge} link=${link} />`}
          ${isRunning && wasCut && link.state === 'live' && ' Connected again: the progress is that of now, nothing was missed.'}</p>
        <${FailureBox} failure=${failure} retry=${retry} />
        <label class="field"><span>${processed.toLocaleString('en')} of ${counted(total, 'row')} with an outcome</span>
          <progress max=${total || 1} value=${total === 0 ? 1 : processed}></progress></label>
        ${status === 'FAILED' && html`<p class="warning">It could not continue: the users created until then stay, and the rows after row ${processed.toLocaleString('en')} have no outcome.</p>`}
        ${status === 'CANCELLED' && html`<p class="warning">It was cancelled: the users created until then stay, and the rows after row ${processed.toLocaleString('en')} were not migrated.</p>`}
        <${Facts} of=${[
          ['Users created', success.toLocaleString('en')],
          ['Rows skipped', skipped.toLocaleString('en')],
          ['Rows failed', failed.toLocaleString('en')],
          ['Begun', html`<${Time} at=${createdAt} />`],
          ['Ended', finishedAt ? html`<${Time} at=${finishedAt} />` : 'Not yet'],
          ['Started by', html`<code>${createdBy}</code>`],
          ['Id', html`<code>${migration.id}</code>`],
        ]} />
        ${!isRunning && html`<${Problems} key=${status} migration=${migration} />`}
        <h2>All rows</h2>
        <p class="muted">Rows are counted from 1 after the header, empty lines left out; <code>line N</code> in a reason is the same number.</p>
        ${read.rows.totalCount === 0 ? html`<${Empty}>No row has an outcome yet.<//>` : html`<${Table} label="All rows" columns=${ROW_COLUMNS} rows=${nodesOf(read.rows)} keyOf=${({ index }: Row) => index} />`}
        <${Pager} connection=${read.rows} pages=${pages} noun="rows" />
        ${
          isAsking &&
          html`<${Confirm} title="Cancel this migration?" verb="Cancel the migration" act=${cancel} onClose=${() => setAsking(false)}>
          <p>Rows already migrated stay: ${counted(success, 'user')} until now, and those created before it stops.</p>
          <p>The other rows are not migrated, and a cancelled migration cannot be continued: to go on, start another one with the same file, whose rows already migrated are then skipped.</p><//>`
        }`;
    }}<//>
  <//>`;
}

const SCANNED = 100;
const SHOWN = 200;
/** The greatest number of rows that are looked through without being asked to. */
const UNASKED = 1_000;

/** What was found among the rows of a migration that has ended, up to `after`. */
interface Found {
  after: string | undefined;
  scanned: number;
  isAll: boolean;
  shown: readonly Row[];
  failed: readonly number[];
}

/** The failed and skipped rows of a migration that has ended, and a file of the failed ones to correct. */
function Problems({ migration: { id, total, success, skipped, failed } }: { migration: Migration }) {
  const [found, setFound] = useState<Found>({ after: undefined, scanned: 0, isAll: false, shown: [], failed: [] });
  const { run, isBusy, failure } = useAction();
  const [saved, setSaved] = useState('');
  const stopping = useRef(new AbortController());
  const processed = success + skipped + failed;
  const file = CHOSEN.get(id);
  const scan = async (): Promise<Found> => {
    stopping.current = new AbortController();
    const { signal } = stopping.current;
    let last = found;
    while (!last.isAll) {
      const { migration } = await ask(MigrationRowsDocument, { id, first: SCANNED, after: last.after ?? null }, { signal });
      if (!migration) throw new Failure('The migration is no longer there.');
      const rows = nodesOf(migration.rows);
      const bad = rows.filter(({ status }) => status !== 'created');
      last = {
        after: migration.rows.pageInfo.endCursor ?? last.after,
        scanned: last.scanned + rows.length,
        isAll: !migration.rows.pageInfo.hasNextPage,
        shown: [...last.shown, ...bad].slice(0, SHOWN),
        failed: [...last.failed, ...bad.filter(({ status }) => status === 'failed').map(({ index }) => index)],
      };
      setFound(last);
    }
    return last;
  };
  const act = (then: (all: Found) => unknown) =>
    run(async () => {
      try {
        await then(await scan());
      } catch (error) {
        if (!stopping.current.signal.aborted) throw error;
      }
    });
  useEffect(() => {
    if (failed + skipped > 0 && processed <= UNASKED) void act(() => undefined);
    return () => stopping.current.abort();
  }, []);
  const save = async (all: Found) => {
    if (!file) return;
    const parts: Blob[] = [];
    const rows = await cutRecords(file, new Set(all.failed), (some) => parts.push(new Blob(some))).catch(unreadable);
    if (rows !== total) throw new Failure(`The file has changed: it has ${counted(rows, 'row')}, and the migration ${total}.`);
    const blob = new Blob(parts, { type: 'text/csv' });
    const name = `${file.name.replace(/\.csv$/i, '')}-failed-rows.csv`;
    const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    setSaved(`${name} has ${counted(all.failed.length, 'failed row')}, as they stand in ${file.name}. Correct them, and start a migration with it.`);
  };
  if (failed + skipped === 0) return null;
  return html`<h2>Failed and skipped rows</h2>
    ${failed > 0 && !file && html`<p class="muted">A file of the failed rows, to correct, can be made only in the session in which the CSV was chosen: the server does not keep it.</p>`}
    <p class="actions">
      ${failed > 0 && file && html`<button type="button" disabled=${isBusy} onClick=${() => act(save)}>Download the failed rows as CSV</button>`}
      ${!found.isAll && !isBusy && html`<button type="button" onClick=${() => act(() => undefined)}>Find the failed and skipped rows</button>`}
      ${isBusy && !found.isAll && html`<button type="button" onClick=${() => stopping.current.abort()}>Stop looking</button>`}
      <span role="status">${found.isAll ? saved : `${found.scanned.toLocaleString('en')} of ${counted(processed, 'row')} looked through`}</span></p>
    <${FailureBox} failure=${failure} />
    ${found.shown.length > 0 && html`<${Table} label="Failed and skipped rows" columns=${ROW_COLUMNS.slice(0, -1)} rows=${found.shown} keyOf=${({ index }: Row) => index} />`}
    ${failed + skipped > SHOWN && found.shown.length === SHOWN && html`<p class="muted">The first ${SHOWN} of ${failed + skipped}; all are among the rows below.</p>`}`;
}
