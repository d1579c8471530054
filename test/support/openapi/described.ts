import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { oas31 } from 'zod-openapi';
import type { Answer } from '../harness.ts';

const ROOT = join(import.meta.dirname, '../../..');
export const committed = readFileSync(join(ROOT, 'schema/openapi.json'), 'utf8');
export const document: oas31.OpenAPIObject = JSON.parse(committed);

const METHODS = ['get', 'head', 'put', 'post', 'delete', 'options', 'patch', 'trace'] as const;
const KEYWORDS = ['openapi', 'info', 'servers', 'tags', 'paths', 'components'];

/** What every answer may have beside what the document says of it: HTTP's own headers, and those of CORS. */
const PLAIN = /^(content-(type|length|encoding)|date|connection|keep-alive|pragma|vary|access-control-.*)$/;

export interface DescribedOperation {
  method: string;
  path: string;
  operation: oas31.OperationObject;
  /** Where it stands in the document, as a JSON pointer. */
  at: readonly string[];
}

/** Every operation of the document. */
export const operations: readonly DescribedOperation[] = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
  METHODS.flatMap((method) => {
    const operation = item[method];
    return operation ? [{ method: method.toUpperCase(), path, operation, at: ['paths', path, method] }] : [];
  }),
);

/** The operation of a method and a path, as the document has them. */
export function operationOf(method: string, path: string): DescribedOperation {
  const found = operations.find((candidate) => candidate.method === method && candidate.path === path);
  if (!found) throw new Error(`${method} ${path} is not described`);
  return found;
}

// What requires a member may stand apart from what says its type: in `anyOf`, beside the object.
const ajv = new Ajv2020({ allErrors: true, strictRequired: false, strictTypes: false });
addFormats.default(ajv);
ajv.addFormat('uint64', true);
ajv.addVocabulary(KEYWORDS);
ajv.addKeyword('example');
ajv.addKeyword('discriminator');
ajv.addSchema({ ...document, $id: 'https://portcullis.test/openapi' });

/** What is wrong with a value of the schema at a place in the document; nothing where it is valid. */
export function faultsOf(value: unknown, at: readonly string[]): string[] {
  const pointer = at.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/');
  const validate = ajv.compile({ $ref: `https://portcullis.test/openapi#/${pointer}` });
  if (validate(value)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
}

/** What stands at a place, and where that is once a reference is followed. */
export function followed(at: readonly string[]): { value: Record<string, unknown>; at: readonly string[] } {
  let value: unknown = document;
  for (const part of at) value = (value as Record<string, unknown> | undefined)?.[part];
  if (typeof value !== 'object' || value === null) throw new Error(`nothing at ${at.join(' ')}`);
  if (!('$ref' in value)) return { value: value as Record<string, unknown>, at };
  return followed(String(value.$ref).split('/').slice(1));
}

/** What an answer has that the document does not say of it: its status, a header, its body. */
export function unlike({ at, method, operation }: DescribedOperation, answer: Answer): string[] {
  const status = String(answer.status);
  if (!Object.hasOwn(operation.responses ?? {}, status)) return [`status ${status} is not documented`];
  const response = followed([...at, 'responses', status]);
  const faults = headerFaults(response, answer);
  return method === 'HEAD' ? faults : [...faults, ...bodyFaults(response, answer)];
}

function headerFaults({ value, at }: ReturnType<typeof followed>, { headers }: Answer): string[] {
  const names = Object.keys(value.headers ?? {});
  const known = new Set(names.map((name) => name.toLowerCase()));
  const others = [...headers.keys()].filter((name) => !known.has(name) && !PLAIN.test(name));
  const faults = others.map((name) => `the header ${name} is not documented`);
  for (const name of names) {
    const header = followed([...at, 'headers', name]);
    const text = headers.get(name);
    if (text === null) {
      if (header.value.required === true) faults.push(`the header ${name} is missing`);
      continue;
    }
    const { type } = header.value.schema as { type?: string };
    const wrong = faultsOf(type === 'integer' ? Number(text) : text, [...header.at, 'schema']);
    faults.push(...wrong.map((fault) => `the header ${name}${fault}`));
  }
  return faults;
}

function bodyFaults({ value, at }: ReturnType<typeof followed>, { headers, text, json }: Answer): string[] {
  if (!value.content) return text === '' ? [] : ['a body, where the document has none'];
  const type = headers.get('content-type')?.split(';', 1)[0] ?? '';
  if (!Object.hasOwn(value.content, type)) return [`the content type ${type} is not documented`];
  return faultsOf(json, [...at, 'content', type, 'schema']).map((fault) => `the body${fault}`);
}
