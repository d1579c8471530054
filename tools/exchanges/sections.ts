import { isUtf8 } from 'node:buffer';
import { glob } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import type { Instance } from './instance.ts';
import type { Done, Recorder } from './recorder.ts';

type Row = Record<string, unknown>;

const OF_NO_EXCHANGE = '(none)';
/** What is told of a process, and not of what it has done. */
const OF_PROCESS = /^(?:process|nodejs)_/;
/** Tables of what has come and gone, and of when: how far a follower happens to be at the end of a recording is in them. */
const PASSING = new Set([
  'audit_records',
  'bus_offsets',
  'client_quotas',
  'mikro_orm_migrations',
  'migration_jobs',
  'outbox',
]);

/** The names of the series of `/metrics`, with their labels and what is said of them; without values and buckets. */
export async function keepMetrics(recorder: Recorder, { adminUrl }: Instance): Promise<void> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const lines = text.split('\n').map((line) => (line.startsWith('#') ? line : seriesOf(line)));
  for (const line of [...new Set(lines)].filter((name) => name !== '').sort())
    recorder.section('metric', OF_NO_EXCHANGE, line);
}

function seriesOf(line: string): string {
  const [, name = '', labels = ''] = /^(\w+)(\{.*\})?/.exec(line) ?? [];
  return OF_PROCESS.test(name) ? '' : `${name}${labels.replace(/,?le="[^"]*"/, '')}`;
}

/** What the admin listener answers. */
export async function keepAdmin(recorder: Recorder, { adminUrl }: Instance): Promise<void> {
  for (const [method, path] of [
    ...['/livez', '/readyz', '/readyz?exclude=stores', '/readyz?x', '/', '/health', '/graphql'].map((path) => [
      'GET',
      path,
    ]),
    ['HEAD', '/livez'],
    ['POST', '/readyz'],
    ['HEAD', '/metrics'],
  ] as const) {
    const answer = await fetch(`${adminUrl}${path}`, { method: method ?? '' });
    const headers = [...answer.headers].filter(([name]) => name !== 'date');
    const body = await answer.text();
    recorder.section('admin', `${method} ${path}`, recorder.names.value({ status: answer.status, headers, body }));
  }
}

/** Every line of the log, with the exchange that it is of. */
export function keepLog(recorder: Recorder, lines: readonly Row[]): void {
  const kept = lines.filter(({ correlation_id: id }) => id !== 'unrecorded');
  const told = kept.map(
    ({ time: _time, pid: _pid, hostname: _host, ...line }) => [nameOf(recorder, line), withoutStack(line)] as const,
  );
  // What is of no exchange comes as often as the clock has it.
  const once = new Map(
    told.map((entry, index) => [entry[0] === OF_NO_EXCHANGE ? JSON.stringify(entry) : index, entry]),
  );
  keepByExchange(recorder, 'log', [...once.values()]);
}

function withoutStack(line: Row): Row {
  const { err } = line;
  if (typeof err !== 'object' || err === null || !('stack' in err)) return line;
  // Which files and lines it came through is no behaviour.
  return { ...line, err: { ...err, stack: String(err.stack).split('\n    at ')[0] } };
}

/** Every column of every audit record, and of every other row that is kept, out of the database of an instance that has stopped. */
export async function keepRows(recorder: Recorder, { dataDir }: Instance): Promise<void> {
  let folder = '';
  for await (const file of glob('*/PG_VERSION', { cwd: dataDir })) folder = join(dataDir, dirname(file));
  const parsers = { 17: textOfBytes, 20: String, 1082: String, 1114: String, 1184: String };
  const startParams = [...PGlite.defaultStartParams, '-c', 'timezone=UTC'];
  const database = await PGlite.create({ dataDir: folder, startParams, parsers });
  const read = async (text: string) => (await database.query<Row>(text)).rows;
  const audited = await read('select * from audit_records order by at, id');
  const kept = audited.filter(({ correlation_id: id }) => id !== 'unrecorded');
  const bytesOf = ({ correlation_id: id, request_bytes, response_bytes, headers }: Row) => {
    const bytes = recorder.done.get(String(id))?.bytes;
    const given = { ...(headers as Row) };
    if (Number(given['content-length']) === bytes?.request) given['content-length'] = '<length>';
    return {
      headers: given,
      request_bytes: bytes?.request === Number(request_bytes) ? '<length>' : request_bytes,
      response_bytes: bytes?.response === Number(response_bytes) ? '<length>' : response_bytes,
    };
  };
  keepByExchange(
    recorder,
    'audit',
    kept.map((row) => [nameOf(recorder, row), { ...row, ...bytesOf(row) }]),
  );
  const tables = await read(
    "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1",
  );
  for (const { relname } of tables) {
    const table = String(relname);
    if (PASSING.has(table)) continue;
    const rows = await read(`select * from "${table}"`);
    keepByExchange(
      recorder,
      'row',
      rows.map((row) => [table, row]),
    );
  }
  await database.close();
}

/** Of PostgreSQL's hexadecimal: the text, or how many bytes they are that are none, such as hashes of what is random. */
function textOfBytes(hex: string): string {
  const bytes = Buffer.from(hex.slice(2), 'hex');
  return isUtf8(bytes) ? bytes.toString() : `<${bytes.length} bytes>`;
}

/** Groups what is of an exchange, in the order of the exchanges; what came at one time has the order of its text. */
function keepByExchange(
  recorder: Recorder,
  section: string,
  all: readonly (readonly [name: string, value: Row])[],
): void {
  recorder.names.begin(section);
  const order = new Map([...recorder.done.values()].map(({ name }, index) => [name, index]));
  const placeOf = (name: string) => order.get(name) ?? order.size;
  const groups = [...Map.groupBy(all, ([name]) => name)].sort(
    ([a], [b]) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1),
  );
  for (const [name, entries] of groups) {
    const texts = entries.map(([, value]) => ({ text: JSON.stringify(value), blank: blank(JSON.stringify(value)) }));
    texts.sort((a, b) => (a.blank < b.blank ? -1 : a.blank > b.blank ? 1 : 0));
    for (const { text } of texts) recorder.section(section, name, JSON.parse(recorder.names.of(text)));
  }

  /** Without what has no name yet, or the order would be another one each time. */
  function blank(text: string): string {
    return recorder.names.blank(text);
  }
}

function nameOf(recorder: Recorder, { correlation_id: id }: Row): string {
  const done: Done | undefined = recorder.done.get(String(id));
  return done?.name ?? OF_NO_EXCHANGE;
}
