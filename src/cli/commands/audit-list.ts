import { setTimeout } from 'node:timers/promises';
import type { ArrivedRow, AuditArrivals, AuditFilter } from '../../audit/audit-filter.ts';
import { csvRecord } from '../../audit/export/csv.ts';
import { instantOfMs, isoFromPg, pgFromInstant } from '../../lib/instants.ts';
import { type CommandBody, Interruption, printable, printRows, UsageError } from '../kit/command.ts';
import { type Flags, instant, text, uuid, wholeNumber } from '../kit/flags.ts';
import { openReading } from '../kit/open-services.ts';

const DEFAULT_LIMIT = 100;
const FOLLOW_MS = 1_000;

/** The flags that choose audit records. */
export const FILTER_FLAGS = {
  node: { help: 'limit to records of this tenant' },
  'correlation-id': { help: 'limit to records with this X-Correlation-ID' },
  client: { help: 'limit to records of this client id' },
  subject: { help: 'limit to records of this subject, the sub of a token' },
  method: { help: 'limit to this method, such as POST; WS for operations over WebSocket, CLI for commands' },
  path: { help: 'limit to exactly this path, or with a trailing * to paths that begin like this' },
  status: { help: 'limit to this response status, or to a class such as 4xx' },
  failed: { help: 'limit to requests with a status of 400 or higher', isSwitch: true },
  since: { help: 'limit to records at or after this time (ISO 8601, or so long ago: 90s, 15m, 1h, 7d)' },
  until: { help: 'limit to records before this time (as for --since)' },
};

/** `portcullis audit list`: prints audit records, including those without a tenant. */
export const auditList: CommandBody = {
  description: [
    'Lists audited requests, those of all tenants and those without a tenant, in the order in which they arrived in the',
    `database: the last ${DEFAULT_LIMIT} that match, or with --since or --after all. The columns are time, status, milliseconds,`,
    'method, path, node, correlation id and position. With --json records include headers and bodies; secrets in them are ***.',
    'Continue with --after and the last position: no record is left out. One that an open transaction holds back is shown',
    'when that has ended, with all behind it.',
  ].join(' '),
  flags: {
    ...FILTER_FLAGS,
    after: { help: 'begin behind this position' },
    follow: {
      help: 'go on with records as they arrive, until interrupted; with --json one document a line',
      isSwitch: true,
    },
    csv: { help: 'print CSV, without headers and bodies', isSwitch: true },
    limit: {
      help: `maximum number of records: the last ones, or with --after the first (default ${DEFAULT_LIMIT}, see above)`,
    },
  },
  examples: [
    'portcullis audit list --failed --since 1h',
    'portcullis audit list --status 4xx --client CLIENT_ID --path "/v1/wallets/*" --csv > refused.csv',
    'portcullis audit list --after 184467 --follow --json',
    'portcullis audit list --correlation-id 0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d --json',
  ],
  async run(input) {
    const { flags, json, stack } = input;
    const filter = filterOf(flags);
    const after = wholeNumber(flags, 'after', 184_467);
    const isAll = after !== undefined || filter.since !== undefined;
    const limit = wholeNumber(flags, 'limit', DEFAULT_LIMIT) ?? (isAll ? Number.POSITIVE_INFINITY : DEFAULT_LIMIT);
    if (limit === 0) throw new UsageError('--limit must be at least 1');
    if (json && flags.csv === true) throw new UsageError('give either --json or --csv');
    const db = await openReading(input);
    const { AuditArrivals } = await import('../../audit/audit-filter.ts');
    const { signal } = flags.follow === true ? stack.use(new Interruption()) : { signal: undefined };
    const rows = listed(new AuditArrivals(db), filter, { after, limit, signal });
    const head = csvRecord(CSV_COLUMNS);
    const form = flags.csv === true ? { head, empty: head, line: csvLine } : { line };
    return printRows(input, { name: 'records', rows, view, isLines: signal !== undefined, ...form });
  },
};

/** The columns of a record in CSV: all but headers and bodies. */
const CSV_COLUMNS = [
  ...['position', 'at', 'id', 'node_id', 'client_id', 'subject', 'method', 'path', 'query', 'operation'],
  ...['status_code', 'elapsed', 'correlation_id', 'real_ip', 'is_api', 'aborted', 'request_bytes', 'response_bytes'],
];

function csvLine(row: ArrivedRow): string {
  const cells: Record<string, unknown> = view(row);
  return csvRecord(CSV_COLUMNS.map((column) => cells[column]));
}

/** Yields records page by page, so that only one page is in memory. */
async function* listed(
  arrivals: AuditArrivals,
  filter: AuditFilter,
  {
    after,
    limit,
    signal,
  }: {
    after: number | undefined;
    limit: number;
    /** Ends a listing that goes on with records as they arrive; undefined if it ends with those that are there. */
    signal: AbortSignal | undefined;
  },
): AsyncGenerator<ArrivedRow> {
  let horizon = await arrivals.horizon();
  let start = after ?? (Number.isFinite(limit) ? await arrivals.before(filter, limit, horizon) : -1);
  let left = signal && after === undefined ? Number.POSITIVE_INFINITY : limit;
  for (;;) {
    for await (const row of arrivals.read(filter, start, horizon)) {
      yield row;
      left -= 1;
      if (left === 0) return;
    }
    if (!signal || (await setTimeout(FOLLOW_MS, signal.aborted, { signal }).catch(() => true))) return;
    start = Math.max(start, horizon);
    horizon = await arrivals.horizon();
  }
}

/** Returns the conditions that the flags set. @throws UsageError for an invalid one. */
export function filterOf(flags: Flags): AuditFilter {
  const [node, path] = [text(flags, 'node'), text(flags, 'path')];
  return {
    nodeId: node === undefined ? undefined : uuid('--node', node),
    clientId: text(flags, 'client'),
    correlationId: text(flags, 'correlation-id'),
    subject: text(flags, 'subject'),
    method: text(flags, 'method')?.toUpperCase(),
    ...(path?.endsWith('*') ? { pathPrefix: path.slice(0, -1) } : { path }),
    ...statusOf(flags),
    isFailed: flags.failed === true || undefined,
    since: time(flags, 'since'),
    until: time(flags, 'until'),
  };
}

/** Returns the flags of the filter as they were given, by name. */
export function filterFlagsOf(flags: Flags): Record<string, string> {
  return Object.fromEntries(
    Object.keys(FILTER_FLAGS).flatMap((name) => (flags[name] ? [[name, String(flags[name])]] : [])),
  );
}

function statusOf(flags: Flags): Pick<AuditFilter, 'statusCode' | 'statusClass'> {
  const [, status, first] = /^(?:([1-5]\d\d)|([1-5])xx)$/i.exec(text(flags, 'status') ?? '') ?? [];
  if (flags.status !== undefined && !status && !first)
    throw new UsageError('--status must be an HTTP status such as 404, or a class such as 4xx');
  return { ...(status && { statusCode: Number(status) }), ...(first && { statusClass: Number(first) }) };
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function time(flags: Flags, name: string): string | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text(flags, name) ?? '') ?? [];
  const value =
    count === undefined ? instant(flags, name) : instantOfMs(Date.now() - Number(count) * (UNITS_MS[unit] ?? 0));
  return value && pgFromInstant(value);
}

/** Returns an audit record with the names of the table's columns. */
function view({ at, elapsed, position, ...row }: ArrivedRow) {
  return { at: isoFromPg(at), ...row, elapsed: Number(elapsed), position: Number(position) };
}

function line(row: ArrivedRow): string {
  const columns = [
    isoFromPg(row.at),
    String(row.status_code),
    `${Number(row.elapsed).toFixed(1)} ms`.padStart(10),
    row.method.padEnd(6),
    printable(row.path),
    row.node_id ?? '-',
    printable(row.correlation_id),
    row.position,
  ];
  return `${columns.join('  ')}\n`;
}
