/** What is sent over HTTP. The token of the attacker is added unless it is to have none. */
export interface HttpRequest {
  method: string;
  /** What stands behind the path, with its `?`. */
  query?: string;
  headers: Record<string, string>;
  body?: string | Buffer;
}

interface Described {
  group: string;
  /** What it is, within its group. */
  name: string;
  /** What it would do where nobody refused it. */
  tries: string;
  /** Whether it is sent to an instance of production, which tells nothing of its schema. */
  isProduction?: boolean;
}

/** A request, and what it must be answered. */
export interface HttpAttack extends Described {
  transport: 'http';
  request: () => HttpRequest;
  isAnonymous?: boolean;
  /** The status, and what stands in the body. */
  expected: { status: number; says: RegExp };
}

/** Messages on a socket, and what must become of it. */
export interface SocketAttack extends Described {
  transport: 'socket';
  /** Whether `connection_init` with a good token goes before. */
  isInitialised: boolean;
  messages: () => readonly string[];
  /** The code that it is closed with, or one of the messages that come. */
  expected: { closed: number } | { says: RegExp };
}

export type Attack = HttpAttack | SocketAttack;

type Row = [name: string, tries: string, request: () => HttpRequest, status: number, says: RegExp];

/** The attacks of a group, a row for each. */
export function httpGroup(group: string, rows: readonly Row[], more: Partial<HttpAttack> = {}): HttpAttack[] {
  return rows.map(([name, tries, request, status, says]) => ({
    ...{ transport: 'http', group, name, tries, request, expected: { status, says } },
    ...more,
  }));
}

interface Operation {
  variables?: unknown;
  operationName?: unknown;
  extensions?: unknown;
  headers?: Record<string, string>;
}

const JSON_HEADERS = { 'content-type': 'application/json' };

/** One operation in a POST. */
export function post(query: string, { headers, ...operation }: Operation = {}): () => HttpRequest {
  return () => raw(JSON.stringify({ query, ...operation }), { ...JSON_HEADERS, ...headers });
}

/** A subscription over server-sent events. */
export function stream(query: string): () => HttpRequest {
  return post(query, { headers: { accept: 'text/event-stream' } });
}

/** A POST of whatever body. */
export function raw(body: string | Buffer, headers: Record<string, string> = JSON_HEADERS): HttpRequest {
  return { method: 'POST', headers, body };
}

/** A GET with parameters. */
export function get(parameters: Record<string, string>, headers: Record<string, string> = {}): () => HttpRequest {
  return () => ({ method: 'GET', query: `?${new URLSearchParams(parameters)}`, headers });
}

/** The same piece many times, each with its number. */
export function times(count: number, piece: (index: number) => string, separator = ' '): string {
  return Array.from({ length: count }, (_, index) => piece(index)).join(separator);
}

/** A field within a field, `depth` levels with the last. */
export function nested(path: readonly string[], leaf: string): string {
  return `${path.join(' { ')} { ${leaf}${' }'.repeat(path.length)}`;
}
