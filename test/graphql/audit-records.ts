import { parse, validate } from 'graphql';
import { maskBody } from '../../src/audit/mask.ts';
import { hasGoodVariables, rulesOfInvalid, rulesOfValid } from '../../src/faces/graphql/plugins/audit-masking.ts';
import { schema } from './audit-stand.ts';

interface Operation {
  query: string;
  variables?: unknown;
  operationName?: string;
}

const MAX_BYTES = 64 * 1024;

/** What a record of an operation shows: its request, and an answer to it. */
export function shown(params: Operation, answer: unknown = {}): { request: string; response: string } {
  const { request, response } = rulesOf(params);
  const [asked, sent] = [params, answer].map((body) => Buffer.from(JSON.stringify(body)));
  const form = { maxBytes: MAX_BYTES, truncated: false, wellFormed: true };
  return {
    request: maskBody('application/json', asked ?? Buffer.alloc(0), { ...form, rule: request }) ?? '',
    response: maskBody('application/json', sent ?? Buffer.alloc(0), { ...form, rule: response }) ?? '',
  };
}

/** The document that a record shows. */
export function shownDocument(query: string, variables?: unknown): string {
  return JSON.parse(shown({ query, variables }).request).query;
}

export function rulesOf(params: Operation) {
  const document = documentOf(params.query);
  const isValid = document !== undefined && validate(schema, document).length === 0;
  return isValid && hasGoodVariables(schema, document, { ...params })
    ? rulesOfValid(document, { ...params })
    : rulesOfInvalid(params);
}

function documentOf(query: string) {
  try {
    return parse(query);
  } catch {
    return undefined;
  }
}
