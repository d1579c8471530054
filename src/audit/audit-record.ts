/** An audit record, with the columns of `audit_records` as members (docs/contract.md, 1-04). */
export interface AuditRecord {
  at: string;
  id: string;
  node_id: string | null;
  correlation_id: string;
  method: string;
  path: string;
  status_code: number;
  /** The duration of the request, in ms. */
  elapsed: number;
  headers: Record<string, unknown>;
  remote_address: string;
  real_ip: string;
  request_bytes: number;
  response_bytes: number;
  is_api: boolean;
  aborted: boolean;
  /** The `sub` of the token; null without one. */
  subject: string | null;
  client_id: string | null;
  /** The path pattern of the endpoint, or the schema names of the operation's root fields; never the caller's text. */
  operation: string | null;
  /** The ids of the users whose rows the request created, changed, returned or matched as a duplicate; null if none. */
  noted_users: readonly string[] | null;
  query: string | null;
  request_body: string | null;
  response_body: string | null;
}

/** The columns that an erasure removes, in the order of their salts and digests. */
export const ERASABLE_COLUMNS = ['query', 'request_body', 'response_body'] as const;

/** The columns of a record that describe its request, in the order of a line of the spool. */
export const RECORD_COLUMNS = [
  ...['at', 'id', 'node_id', 'correlation_id', 'method', 'path', 'status_code', 'elapsed', 'headers'],
  ...['remote_address', 'real_ip', 'request_bytes', 'response_bytes', 'is_api', 'aborted'],
  ...['subject', 'client_id', 'operation', 'noted_users', ...ERASABLE_COLUMNS],
] as const;

/** The columns of `audit_records` that a line of the spool has, in its order. */
export const AUDIT_COLUMNS = ['chain_id', 'chain_index', 'previous_hash', 'hash', 'salts', ...RECORD_COLUMNS] as const;

const NULL = '\\N';

/** Returns the columns that no erasure removes, in the format `text` of PostgreSQL's `COPY`, as they are inserted. */
export function fixedColumnsOf(r: AuditRecord): string {
  const request = `${r.at}\t${r.id}\t${r.node_id?.toLowerCase() ?? NULL}\t${field(r.correlation_id)}\t${field(r.method)}\t${field(r.path)}`;
  const result = `${r.status_code}\t${r.elapsed}\t${field(headersText(r))}\t${field(r.remote_address)}\t${field(r.real_ip)}`;
  const sizes = `${r.request_bytes}\t${r.response_bytes}\t${r.is_api}\t${r.aborted}`;
  const users = r.noted_users ? `{${r.noted_users.join()}}` : NULL;
  return `${request}\t${result}\t${sizes}\t${field(r.subject)}\t${field(r.client_id)}\t${field(r.operation)}\t${users}`;
}

/** Returns the columns that an erasure removes, in the same format. */
export function erasableColumnsOf({
  query,
  request_body,
  response_body,
}: Pick<AuditRecord, (typeof ERASABLE_COLUMNS)[number]>): string {
  return `${field(query)}\t${field(request_body)}\t${field(response_body)}`;
}

/**
 * Returns the headers of a record as JSON. The names are sorted, since the database keeps no order; a value that is not
 * an object stays unchanged.
 */
function headersText({ headers }: Pick<AuditRecord, 'headers'>): string {
  if (Object.prototype.toString.call(headers) !== '[object Object]') return JSON.stringify(headers);
  const sorted: AuditRecord['headers'] = Object.create(null);
  for (const name of Object.keys(headers).sort()) sorted[name] = headers[name];
  return JSON.stringify(sorted);
}

// Four searches for one character each take a third of the time of one search for any of them.
function field(text: string | null): string {
  if (text === null) return NULL;
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t');
}

const ESCAPED: Record<string, string> = { n: '\n', r: '\r', t: '\t' };

function textOf(column: string): string {
  return column.replace(/\\(.)/g, (_, character: string) => ESCAPED[character] ?? character);
}

const OPENING_BRACE = 0x7b;

/** Checks whether a spooled line begins with its place in a chain, as all do but refused records and lines of 0.1.0. */
export function isChainedLine(line: Buffer): boolean {
  return line[0] !== OPENING_BRACE;
}

/** Returns the JSON text of the record in a spooled line. */
export function jsonOf(line: Buffer): string {
  const text = line.toString('utf8');
  if (!isChainedLine(line)) return text;
  const members = text.split('\t').map((column, index) => {
    const name = AUDIT_COLUMNS[index];
    return [name, memberOf(name, column)];
  });
  return JSON.stringify(Object.fromEntries(members));
}

const JSON_COLUMNS: ReadonlySet<string | undefined> = new Set([
  ...['status_code', 'elapsed', 'headers', 'request_bytes', 'response_bytes', 'is_api', 'aborted'],
]);

function memberOf(name: string | undefined, column: string): unknown {
  if (column === NULL) return null;
  return JSON_COLUMNS.has(name) ? JSON.parse(textOf(column)) : textOf(column);
}
