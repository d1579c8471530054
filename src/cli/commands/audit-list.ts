import { type AuditFilter, type AuditRecordRow, auditConditions } from '../../audit/audit-filter.ts';
import { RECORD_COLUMNS } from '../../audit/audit-record.ts';
import { isoFromPg, pgFromInstant } from '../../lib/instants.ts';
import type { Db } from '../../platform/database/database.ts';
import { type CommandBody, UsageError } from '../kit/command.ts';
import { type Flags, instant, text, uuid, wholeNumber } from '../kit/flags.ts';
import { openReading } from '../kit/open-services.ts';
import { printRows } from '../kit/print-rows.ts';
import { printable } from '../kit/progress.ts';
import { graphql } from '../kit/running-instance.ts';

const DEFAULT_LIMIT = 100;
const PAGE_SIZE = 200;
/** The most records that one query lists. */
const MAX_PAGE = 100;
const QUERY = `query ($first: Int, $after: String, $filter: AuditFilter) {
  auditRecords(first: $first, after: $after, filter: $filter) {
    edges { node { at statusCode elapsed method path correlationId } }
    pageInfo { hasNextPage endCursor }
  }
}`;

/** The flags that choose audit records. */
export const FILTER_FLAGS = {
  node: { help: 'limit to records of this tenant' },
  'correlation-id': { help: 'limit to records with this X-Correlation-ID' },
  client: { help: 'limit to records of this client id' },
  subject: { help: 'limit to records of this subject, the sub of a token' },
  method: { help: 'limit to this method, such as POST; WS for operations over WebSocket' },
  path: { help: 'limit to exactly this path, or with a trailing * to paths that begin like this' },
  status: { help: 'limit to this response status' },
  since: { help: 'limit to records at or after this time (ISO 8601)' },
  until: { help: 'limit to records before this time (ISO 8601)' },
};

/** `portcullis audit list`: prints audit records, including those without a tenant. */
export const auditList: CommandBody = {
  description: [
    'Lists audited requests, newest first, of all tenants, and requests without a tenant.',
    'The columns are time, status, milliseconds, method, path, node and correlation id.',
    'With --json records include headers and bodies; secrets in them are ***.',
  ].join('\n'),
  flags: {
    ...FILTER_FLAGS,
    limit: { help: `maximum number of records (default ${DEFAULT_LIMIT})` },
  },
  examples: [
    'portcullis audit list --status 401 --since 2026-11-21T10:00:00Z',
    'portcullis audit list --correlation-id 0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d --json',
  ],
  async run(input) {
    const { flags } = input;
    const filter = filterOf(flags);
    const limit = wholeNumber(flags, 'limit', DEFAULT_LIMIT) ?? DEFAULT_LIMIT;
    if (limit === 0) throw new UsageError('--limit must be at least 1');
    const { nodeId: _node, clientId: _client, ...graphqlFilter } = filter;
    const db = await openReading(input, graphql(QUERY, { first: Math.min(limit, MAX_PAGE), filter: graphqlFilter }));
    return printRows(input, { name: 'records', rows: recordsOf(db, filter, limit), view, line });
  },
};

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
    statusCode: statusOf(flags),
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

function statusOf(flags: Flags): number | undefined {
  const status = wholeNumber(flags, 'status', 404);
  if (status === undefined || (status >= 100 && status <= 599)) return status;
  throw new UsageError('--status must be an HTTP status such as 404');
}

function time(flags: Flags, name: string): string | undefined {
  const value = instant(flags, name);
  return value && pgFromInstant(value);
}

/** Yields the audit records page by page, so that only one page is in memory. */
async function* recordsOf(db: Db, filter: AuditFilter, limit: number): AsyncGenerator<AuditRecordRow> {
  const unscoped = db.unscoped('operators read records of all nodes');
  let last: AuditRecordRow | undefined;
  for (let rowsLeft = limit; rowsLeft > 0; rowsLeft -= PAGE_SIZE) {
    const after = last;
    const rows = await unscoped.run((k) =>
      k
        .selectFrom('audit_records')
        .select(RECORD_COLUMNS)
        .where((eb) =>
          eb.and([
            ...auditConditions(eb, filter),
            ...(after ? [eb(eb.refTuple('at', 'id'), '<', eb.tuple(after.at, after.id))] : []),
          ]),
        )
        .orderBy('at', 'desc')
        .orderBy('id', 'desc')
        .limit(Math.min(rowsLeft, PAGE_SIZE)),
    );
    yield* rows;
    last = rows.at(-1);
    if (rows.length < PAGE_SIZE) return;
  }
}

/** Returns an audit record with the names of the table's columns. */
function view({ at, elapsed, ...row }: AuditRecordRow) {
  return { at: isoFromPg(at), ...row, elapsed: Number(elapsed) };
}

function line(row: AuditRecordRow): string {
  const columns = [
    isoFromPg(row.at),
    String(row.status_code),
    `${Number(row.elapsed).toFixed(1)} ms`.padStart(10),
    row.method.padEnd(6),
    printable(row.path),
    row.node_id ?? '-',
    printable(row.correlation_id),
  ];
  return `${columns.join('  ')}\n`;
}
