import { type DocumentNode, parse, validate } from 'graphql';
import { OperationAudits } from '../../../src/api/graphql/plugins/audit-masking.ts';
import type { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { schema } from './audit-stand.ts';

interface Operation {
  query: string;
  variables?: unknown;
  operationName?: string;
}

/** What a record of an operation shows: its request, null if that is invalid, and an answer to it. */
export function shown(params: Operation, answer: unknown = {}): { request: string | null; response: string } {
  const { request, response } = auditsOf(params).ofSocket(params, JSON.stringify(answer));
  return { request: request.text ?? null, response: response.text ?? '' };
}

/** The request that a record of a valid operation shows. */
export function shownRequest(params: Operation): { query: string; variables?: unknown } {
  const { request } = shown(params);
  if (request === null) throw new Error('it is invalid');
  return JSON.parse(request);
}

/** The names that are masked in the captured response to an operation. */
export function maskedNames(params: Operation): ReadonlySet<string> | undefined {
  const exchange = { audit: {}, req: { method: 'POST' } } as Exchange;
  auditsOf(params).came(exchange, params);
  return exchange.audit.operations?.()[0]?.response.maskedNames;
}

function auditsOf(params: Operation): OperationAudits {
  const audits = new OperationAudits(schema);
  const onValidate = audits.plugin().onValidate as unknown as OnValidate;
  const documentAST = documentOf(params.query);
  if (documentAST) {
    const valid = validate(schema, documentAST).length === 0;
    onValidate({ params: { documentAST }, context: { params } })({ valid });
  }
  return audits;
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
