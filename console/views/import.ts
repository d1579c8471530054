import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { mutate } from '../api.ts';
import { StartUserMigrationDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Field, inputOf } from '../kit/form.ts';
import { type Column, saveFile, Table } from '../kit/list.ts';
import { LeaveGuard, toast } from '../kit/overlay.ts';
import { FailureBox, may, Needs, Page, Skeleton, useAction } from '../kit/page.ts';
import { counted, words } from '../kit/text.ts';
import { onSignOut } from '../remembered.ts';
import { go, guardLeaving, linkTo } from '../router.ts';
import { copyOf, fieldsOf, guessedFieldsOf, recordOf, recordsOf } from './csv.ts';

const KNOWN = ['wallet_address', 'email', 'external_id', 'name', 'surname', 'kyc_sent'];
const TEMPLATE = `${KNOWN}\r\n0x52908400098527886e0f7030069857d2e4169ee7,ada@example.com,,Ada,Lovelace,false\r\n`;
/** How many rows are checked in the browser, and how many are shown to be corrected. */
const CHECKED = 10_000;
export const CORRECTABLE = 50;

/** The files of the migrations of this session, by id; and the file that is being checked. */
export const CHOSEN = new Map<string, File>();
const chosen = signal<File | undefined>(undefined);
const dropFile = () => {
  chosen.value = undefined;
};
onSignOut(() => {
  CHOSEN.clear();
  dropFile();
});

export function check(file: File): void {
  chosen.value = file;
  go(linkTo(['migrations', 'new']));
}

export function unreadable(): never {
  throw new Error('The file cannot be read: it was moved or changed, or is a folder. Choose it again.');
}

export async function send(file: File, dryRun: boolean, signal?: AbortSignal): Promise<void> {
  await file.slice(0, 1).arrayBuffer().catch(unreadable);
  const { id } = await mutate(StartUserMigrationDocument, { file: null, dryRun, name: file.name.slice(0, 255) }, { file, signal });
  CHOSEN.set(id, file);
  go(linkTo(['migrations', id]));
}

/** A row of a file, and why it creates no user. */
export interface FileRow {
  index: number;
  fields: string[];
  reason?: string | undefined;
}

/** What the beginning of a file has in it; `fault` is what is wrong with the file as a whole. */
interface Checked {
  columns: string[];
  rows: number;
  problems: FileRow[];
  fault?: string | undefined;
}

const columnOf = (name: string) => name.trim().replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function faultOf(header: string[] | undefined, columns: readonly string[]): string | undefined {
  const unknown = columns.find((name) => name !== '' && !KNOWN.includes(name));
  if (!header || /[^\P{Cc}\t]/u.test(header.join(''))) return 'This is not a CSV file in UTF-8. Save it as “CSV UTF-8” in your spreadsheet program.';
  if (/[;\t|]/.test(unknown ?? '')) return 'The fields are not separated by commas. Save the file with commas between the fields.';
  if (unknown !== undefined) return `The column “${unknown.slice(0, 40)}” is not known. Rename or delete it.`;
  return columns.includes('wallet_address') ? undefined : 'The column wallet_address is missing. Add it to the first line.';
}

/** Returns why a row would create no user, as far as the file itself tells. `seen` has the identifiers of the rows before it. */
function problemOf(fields: string[] | undefined, columns: readonly string[], index: number, seen: Map<string, number>): string | undefined {
  if (!fields) return 'A quote is not closed, or the text is not UTF-8';
  if (fields.slice(columns.length).some((field) => field.trim() !== '')) return `${fields.length} fields instead of ${columns.length}`;
  const [wallet = '', email = '', externalId = '', , , kyc = ''] = KNOWN.map((name) => fields[columns.indexOf(name)]?.trim() ?? '');
  if (wallet === '') return 'No wallet address';
  if ([...wallet].length > 128) return 'Wallet address with more than 128 characters';
  if (!/^(?:true|false)?$/i.test(kyc)) return 'kyc_sent is neither true nor false';
  if (email === '' && externalId === '') return 'No email and no external id';
  const keys = { 'Same email': email.toLowerCase(), 'Same external id': externalId, 'Same wallet address': wallet.toLowerCase() };
  const given = Object.entries(keys).filter(([, value]) => value !== '');
  for (const [what, value] of given) if (seen.has(what + value)) return `${what} as line ${(seen.get(what + value) ?? 0) + 1}`;
  for (const [what, value] of given) seen.set(what + value, index);
  return /^\d(?:[.,]\d+)?E\+\d+$/i.test(externalId) ? 'External id shortened by a spreadsheet: format the column as text' : undefined;
}

async function checked(file: File): Promise<Checked> {
  const found: Checked = { columns: [], rows: 0, problems: [], fault: 'The file is empty.' };
  const seen = new Map<string, number>();
  for await (const { index, bytes } of recordsOf(file)) {
    const fields = fieldsOf(bytes);
    if (index > CHECKED) break;
    if (index === 0) {
      found.columns = (fields ?? []).map(columnOf);
      found.fault = faultOf(fields, found.columns);
      if (found.fault) break;
      continue;
    }
    found.rows = index;
    const reason = problemOf(fields, found.columns, index, seen);
    if (reason) found.problems.push({ index, fields: guessedFieldsOf(bytes), reason });
  }
  return found;
}

const label = (column: string) => words(columnOf(column)).replace('ID', 'id');
/** The line of a row in a spreadsheet, whose first has the names of the columns. */
const ROW: Column<FileRow> = { title: 'Line', cell: ({ index }) => index + 1, isNumber: true };
const keyOf = ({ index }: FileRow) => index;

/** The steps of an import: a file is chosen and checked in the browser, before anything is sent. */
export function ImportPage() {
  const file = chosen.value;
  useEffect(() => dropFile, []);
  return html`<${Page} title="Import users" trail=${[{ text: 'User migrations', link: linkTo(['migrations']) }]}>
    <${Needs} permission="users:migrate" to="import users" />
    <ol class="steps">${['Choose a file', 'Check it', 'Import'].map((step, at) => html`<li aria-current=${at === (file ? 1 : 0) ? 'step' : undefined}>${step}</li>`)}</ol>
    ${
      file
        ? html`<${Check} key=${file} file=${file} />`
        : html`<${Choose} label="CSV file of users" take=${check}>
      <p>The first line names the columns, in any order: <code>wallet_address</code>${KNOWN.slice(1).map((name) => html`, <code>${name}</code>`)}. Only the first is required, and each user needs an email or an external id.</p>
      <p><button type="button" onClick=${() => saveFile(new Blob([TEMPLATE], { type: 'text/csv' }), 'users.csv')}>Download template</button></p><//>`
    }
  <//>`;
}

/** A place for a file, which is chosen, or dropped anywhere onto the page. */
export function Choose({ label, take, children }: { label: string; take(file: File): void; children?: unknown }) {
  const [isOver, setOver] = useState(false);
  const [issue, setIssue] = useState<string>();
  const choose = (files: FileList | null | undefined) => {
    if (files?.length === 1 && files[0]) take(files[0]);
    else if (files?.length) setIssue('Choose one file at a time.');
  };
  useEffect(() => {
    const leaving = new AbortController();
    const drag = (event: DragEvent) => {
      event.preventDefault();
      setOver(event.type === 'dragover');
      if (event.type === 'drop') choose(event.dataTransfer?.files);
    };
    for (const type of ['dragover', 'dragleave', 'drop'] as const) addEventListener(type, drag, { signal: leaving.signal });
    return () => leaving.abort();
  }, []);
  return html`<div class=${`card drop ${isOver ? 'over' : ''}`}>
    <${Field} label=${label} hint="Choose a file, or drop one anywhere on this page." issue=${issue}>${(described: object) =>
      html`<input ...${described} type="file" accept=".csv,text/csv" onChange=${({ target }: Event) => choose((target as HTMLInputElement).files)} />`}<//>
    ${children}
  </div>`;
}

/** What a file has in it, and what to correct before it is sent. */
function Check({ file }: { file: File }) {
  const [found, setFound] = useState<Checked>();
  const [isEdited, setEdited] = useState(false);
  const { run, isBusy, failure } = useAction();
  const leaving = useRef(new AbortController());
  useEffect(() => {
    void run(() => checked(file).then(setFound).catch(unreadable));
    return () => leaving.current.abort();
  }, []);
  const isReady = found?.fault === undefined && found && may('users:migrate') && !isBusy && !isEdited;
  // What is to be done next stays in sight: the corrections, or what follows them.
  const isCorrect = found?.problems.length === 0;
  const start = (text: string, dryRun: boolean, name = '') =>
    html`<button type="button" class=${name} disabled=${!isReady} onClick=${() => run(() => send(file, dryRun, leaving.current.signal))}>${text}</button>`;
  return html`<section class="card" aria-label="Check">
    <h2>${file.name}</h2>
    ${found ? html`<${Found} file=${file} found=${found} onEdit=${() => setEdited(true)} />` : !failure && html`<${Skeleton} />`}
    <${FailureBox} failure=${failure} />
    <p class=${`actions end ${isCorrect ? 'sticky' : ''}`}><span role="status">${isEdited ? 'Apply the corrections first.' : isBusy && found && `Sending ${file.name} … Leaving this page stops it.`}</span>
      <button type="button" class="plain" onClick=${dropFile}>Choose another file</button> ${start('Import without checking', false)} ${start('Check without saving', true, isCorrect ? 'primary' : '')}</p>
  </section>`;
}

function Found({ file, found: { columns, rows, problems, fault }, onEdit }: { file: File; found: Checked; onEdit(): void }) {
  if (fault !== undefined) return html`<div class="failure" role="alert"><p>${fault}</p></div>`;
  return html`<p>${rows === CHECKED ? `The first ${counted(rows, 'row')} were checked` : counted(rows, 'row')}, columns ${columns.join(', ')}</p>
    ${
      problems.length === 0
        ? html`<p>No problems found in the file. Check without saving to see whether its users exist already.</p>`
        : html`<h3>${counted(problems.length, 'row')} to correct</h3>
        <${Correct} file=${file} columns=${columns} rows=${problems} keepsOthers onEdit=${onEdit} onDone=${check} />`
    }`;
}

/** What the reason of a problem says of the column that it is about. */
const FAULTS: Readonly<Record<string, RegExp>> = {
  wallet_address: /wallet/i,
  email: /email/i,
  external_id: /external id/i,
  kyc_sent: /kyc/i,
};
const isAtFault = (column: string, reason: string) => FAULTS[column]?.test(reason) ?? false;

/** The choices of whether a KYC token was sent; a text that is none of them stays until another is chosen. */
const kycTexts = (now: string) =>
  [...new Set(['', 'true', 'false', now.trim().toLowerCase()])].map(
    (text) => html`<option value=${text}>${{ '': 'Not said', true: 'Sent', false: 'Not sent' }[text] ?? text}</option>`,
  );

interface CorrectInput {
  file: File;
  columns: readonly string[];
  rows: readonly FileRow[];
  /** Whether the other rows of the file are kept too. */
  keepsOthers: boolean;
  onEdit?(): void;
  onDone(corrected: File): void;
}

/** The first rows that are wrong, to be corrected in place; makes a file with them. */
export function Correct({ file, columns, rows, keepsOthers, onEdit, onDone }: CorrectInput) {
  const wanted = rows.slice(0, CORRECTABLE);
  const [edited, setEdited] = useState<ReadonlyMap<number, string[]>>(new Map());
  const { run, isBusy, failure } = useAction();
  const textsOf = ({ index, fields }: FileRow) => edited.get(index) ?? columns.map((_, at) => fields[at] ?? '');
  const put = (row: FileRow, at: number, text: string) => {
    setEdited(new Map(edited).set(row.index, textsOf(row).with(at, text)));
    onEdit?.();
  };
  const save = async () => {
    const records = new Map(wanted.map((row) => [row.index, recordOf(textsOf(row))]));
    const copying = copyOf(file, (index) => records.get(index) ?? keepsOthers);
    await copying.then(({ copy }) => [guardLeaving(undefined), onDone(copy)], unreadable);
    toast(`${counted(edited.size, 'row')} corrected.`);
  };
  const inputs: Column<FileRow>[] = columns.map((column, at) => ({
    title: label(column),
    cell: (row) => {
      const cell = {
        'aria-label': `${label(column)} of line ${row.index + 1}`,
        'aria-invalid': !edited.has(row.index) && isAtFault(column, row.reason ?? ''),
        value: column === 'kyc_sent' ? textsOf(row)[at]?.trim().toLowerCase() : textsOf(row)[at],
        onInput: (event: Event) => put(row, at, inputOf(event)),
      };
      return html`<div class="cell" data-text=${textsOf(row)[at]}>${column === 'kyc_sent' ? html`<select ...${cell}>${kycTexts(textsOf(row)[at] ?? '')}</select>` : html`<input ...${cell} />`}</div>`;
    },
  }));
  const problem: Column<FileRow> = { title: 'Problem', cell: ({ reason }) => html`<div class="problem">${reason}</div>` };
  return html`<${LeaveGuard} isDirty=${edited.size > 0} /><${Table} label="Rows to correct" rows=${wanted} keyOf=${keyOf} columns=${[ROW, problem, ...inputs]} />
    ${rows.length > CORRECTABLE && html`<p class="muted">The first ${CORRECTABLE} of ${counted(rows.length, 'row')}.</p>`}
    <${FailureBox} failure=${failure} />
    <p class="actions sticky"><button type="button" class="primary" disabled=${isBusy || edited.size === 0} onClick=${() => run(save)}>Apply corrections</button></p>`;
}
