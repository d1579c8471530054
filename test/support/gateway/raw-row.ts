/** Bytes on a connection, and what comes back. Behind them stands one more request, which tells whether the two sides agree where they end. */
export interface RawRow {
  name: string;
  /** `{id}` stands for a correlation id of its own. */
  bytes: string;
  /** The statuses of the answers, in order. */
  answers: number[];
  /** Interim answers. */
  interim?: number[];
  /** Whether the request behind the bytes is answered, and the connection was kept until then. */
  goesOn?: boolean;
  methods?: string[];
}

/** The lines that every good request of the tables has. */
export const OWN = 'Host: x\r\nX-Correlation-ID: {id}\r\n';

/** What the gateway answers, and goes on. */
export function answered(name: string, bytes: string, ...answers: number[]): RawRow {
  return { name, bytes, answers, goesOn: true };
}

/** What the gateway answers last. */
export function closing(name: string, bytes: string, ...answers: number[]): RawRow {
  return { name, bytes, answers };
}

/** What is no request: 400, or 404 where the target alone is none. */
export function refused(name: string, bytes: string, status: 400 | 404 = 400): RawRow {
  return { name, bytes, answers: [status] };
}

const at = '2026-11-21T00:00:00Z';
/** A good notification, its length, and the same in chunks. */
export const BODY = JSON.stringify({ id: 'raw', type: 1, status: 1, created_at: at, updated_at: at });
export const LENGTH = `Content-Length: ${BODY.length}`;
export const CHUNKED = 'Transfer-Encoding: chunked';
export const CHUNKS = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;

/** A notification; `{basic}` stands for good credentials. */
export function post(lines: string[], body: string, version = 'HTTP/1.1'): string {
  const head = ['Authorization: {basic}', 'Content-Type: application/json', ...lines];
  return `POST /v2/webhooks/custodial ${version}\r\n${OWN}${head.map((text) => `${text}\r\n`).join('')}\r\n${body}`;
}

/** A GET with its own lines. */
export function get(target: string, ...lines: string[]): string {
  return `GET ${target} HTTP/1.1\r\n${OWN}${lines.map((text) => `${text}\r\n`).join('')}\r\n`;
}
