import { type DocumentNode, parse, validate } from 'graphql';
import { maskBody } from '../../src/audit/mask.ts';
import { OperationAudits } from '../../src/faces/graphql/execution/audit-masking.ts';
import { schema } from './audit-stand.ts';

interface Operation {
  query: string;
  variables?: unknown;
  operationName?: string;
}

const MAX_BYTES = 64 * 1024;

/** What a record of an operation shows: its request, null if that is invalid, and an answer to it. */
export function shown(params: Operation, answer: unknown = {}): { request: string | null; response: string } {
  const { request, names } = audited(params);
  const sent = Buffer.from(JSON.stringify(answer));
  const form = { maxBytes: MAX_BYTES, truncated: false, wellFormed: true };
  return { request, response: maskBody('application/json', sent, { ...form, names }) ?? '' };
}

/** The request that a record of a valid operation shows. */
export function shownRequest(params: Operation): { query: string; variables?: unknown } {
  const { request } = audited(params);
  if (request === null) throw new Error('it is invalid');
  return JSON.parse(request);
}

/** The request that a record shows, and the names that are masked in the response. */
export function audited(params: Operation): { request: string | null; names: ReadonlySet<string> | undefined } {
  const audits = new OperationAudits(schema);
  const onValidate = audits.plugin().onValidate as unknown as OnValidate;
  const documentAST = documentOf(params.query);
  if (documentAST) {
    const valid = validate(schema, documentAST).length === 0;
    onValidate({ params: { documentAST }, context: { params } })({ valid });
  }
  const { request, response } = audits.ofSocket(params, '');
  return { request: request.text ?? null, names: response.maskedNames };
}

type OnValidate = (given: {
  params: { documentAST: DocumentNode };
  context: { params: object };
}) => (result: { valid: boolean }) => void;

function documentOf(query: string): DocumentNode | undefined {
  try {
    return parse(query);
  } catch {
    return undefined;
  }
}
