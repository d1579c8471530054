import { request } from 'node:http';
import type { Readable } from 'node:stream';
import { print } from 'graphql';
import { StartUserMigrationDocument } from '../../graphql/generated/graphql.ts';

const BOUNDARY = 'a-boundary';
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** The operation that starts a migration, as `operations` carries it. */
export const OPERATIONS = JSON.stringify({ query: print(StartUserMigrationDocument), variables: { file: null } });
export const MAP = '{"0": ["variables.file"]}';
export const CSV = 'wallet_address,email\n0xaa,ada@example.com\n';

/** A part of a form: a field, or a file where it has a file name. */
export interface FormPart {
  name?: string;
  value: string | Buffer;
  filename?: string;
  /** The header lines, in the place of those that belong there. */
  head?: string;
}

export const operationsPart: FormPart = { name: 'operations', value: OPERATIONS };
export const mapPart: FormPart = { name: 'map', value: MAP };
export const filePart: FormPart = { name: '0', value: CSV, filename: 'users.csv' };

/** A form as it goes over the wire, down to its closing boundary. */
export function formOf(parts: readonly FormPart[], closing = `--${BOUNDARY}--\r\n`): Buffer {
  return Buffer.concat([...parts.map(partOf), Buffer.from(closing)]);
}

/** The headers of a form. */
export function formHeaders(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, 'content-type': FORM_TYPE };
}

function partOf({ name, value, filename, head }: FormPart): Buffer {
  const file = filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: text/csv`;
  const lines = head ?? `Content-Disposition: form-data; name="${name}"${file}`;
  return Buffer.concat([Buffer.from(`--${BOUNDARY}\r\n${lines}\r\n\r\n`), Buffer.from(value), Buffer.from('\r\n')]);
}

/** A form as browsers and Node send it. */
export function browserForm(csv: string | Blob): FormData {
  const form = new FormData();
  form.set('operations', OPERATIONS);
  form.set('map', MAP);
  form.set('0', typeof csv === 'string' ? new Blob([csv], { type: 'text/csv' }) : csv, 'users.csv');
  return form;
}

export interface RawAnswer {
  status: number;
  headers: Record<string, unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes.
  json: any;
}

/** Opens a POST whose body the caller writes, chunked or with a length that the headers name. */
export function openPost(url: string, headers: Record<string, string>, path = '/graphql') {
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>();
  const sent = request(`${url}${path}`, { method: 'POST', headers, agent: false }, (response) => {
    const { statusCode: status = 0, headers: given } = response;
    response.toArray().then((chunks) => {
      resolve({ status, headers: given, json: JSON.parse(String(Buffer.concat(chunks))) });
    }, reject);
  });
  sent.on('error', reject);
  return { sent, answer: promise };
}

/** Sends a body as it comes, and gives the answer as soon as it is there. */
export async function sendRaw(url: string, headers: Record<string, string>, body: Buffer | Readable, path?: string) {
  const { sent, answer } = openPost(url, headers, path);
  if (Buffer.isBuffer(body)) sent.end(body);
  else body.pipe(sent);
  return answer.finally(() => sent.destroy());
}
