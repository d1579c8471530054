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

interface Answer extends Partial<HttpAttack> {
  status?: number;
}

/** The attacks of a group that are answered alike, by name; a text is the document of a POST. */
export function httpGroup(
  group: string,
  says: RegExp,
  rows: Record<string, string | (() => HttpRequest)>,
  { status = 400, ...more }: Answer = {},
): HttpAttack[] {
  return Object.entries(rows).map(([name, sent]) => {
    const request = typeof sent === 'string' ? post(sent) : sent;
    return { transport: 'http', group, name, request, expected: { status, says }, ...more };
  });
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

/** An operation whose variables are JSON as it stands. */
export function given(query: string, variables: string, behind = ''): () => HttpRequest {
  return () => raw(`{"query":${JSON.stringify(query)},"variables":${variables}${behind}}`);
}

/** A subscription over server-sent events. */
export function stream(query: string, operation: Operation = {}): () => HttpRequest {
  return post(query, { ...operation, headers: { accept: 'text/event-stream' } });
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
