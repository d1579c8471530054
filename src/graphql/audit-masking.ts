import type { DocumentNode, GraphQLSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { EVERY_STRING } from '../audit/mask-json-rules.ts';
import type { AuditedOperation, Exchange } from '../gateway/exchange.ts';
import { hasGoodVariables, type OperationRules, rulesOfInvalid, rulesOfValid } from './audit-masking-rules.ts';
import type { HttpArrival } from './http-requests.ts';
import type { OperationParams } from './limits.ts';

/** A request over HTTP on its way: the operations that it brought, and how each was answered. */
interface Request {
  isGet: boolean;
  /** Undefined until its operations are known. */
  operations: readonly unknown[] | undefined;
  isBatch: boolean;
  results: readonly unknown[];
  /** The answers of a batch, as they are sent. */
  texts: readonly string[];
}

/** An operation of a socket that has ended. */
interface SocketOperation {
  params: object;
  responseText: string;
  hasData: boolean;
}

/** Knows what the audit records of operations may show: it follows each of them from its arrival to its answer. */
export class OperationAudits {
  readonly #schema: GraphQLSchema;
  readonly #requests = new WeakMap<Exchange, Request>();
  /** The documents that were found valid, by the parameters that they came with. */
  readonly #valid = new WeakMap<object, DocumentNode>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** Follows a request; until its operations are known its record shows no string of it. */
  begin(exchange: Exchange): void {
    const isGet = exchange.req.method === 'GET';
    const request: Request = { isGet, operations: undefined, isBatch: false, results: [], texts: [] };
    this.#requests.set(exchange, request);
    exchange.auditedOperations = () => this.#operationsOf(request);
  }

  /** Yoga plugin: learns which operations came, and which of them are valid. */
  plugin(): Plugin<OperationParams, HttpArrival> {
    return {
      onRequestParse: ({ serverContext }) => ({
        onRequestParseDone: ({ requestParserResult: params }) => {
          const request = this.#requests.get(serverContext.exchange);
          if (!request) return;
          request.isBatch = Array.isArray(params);
          request.operations = Array.isArray(params) ? params : [params];
        },
      }),
      onValidate:
        ({ params: { documentAST }, context }) =>
        ({ valid }) => {
          if (valid) this.#valid.set(context.params, documentAST);
        },
      onResultProcess: ({ result, serverContext }) => {
        const request = this.#requests.get(serverContext.exchange);
        if (request) request.results = Array.isArray(result) ? result : [result];
      },
    };
  }

  /** Learns what each operation of a batch is answered. */
  answered(exchange: Exchange, texts: readonly string[]): void {
    const request = this.#requests.get(exchange);
    if (request) request.texts = texts;
  }

  /** What the record of a socket's operation shows. */
  ofSocket({ params, responseText, hasData }: SocketOperation): AuditedOperation {
    const { request, response } = this.#rulesOf(params, hasData);
    return {
      request: { text: textOf(params) ?? '', rule: request },
      response: { text: responseText, rule: response },
    };
  }

  #operationsOf({ operations, isBatch, results, texts, isGet }: Request): AuditedOperation[] {
    if (operations === undefined) return [{ request: { rule: EVERY_STRING }, response: {} }];
    return operations.map((params, index) => {
      const { request, response, maskQuery } = this.#rulesOf(params, hasRun(results[index]));
      // What was parsed, for a body may name a member twice.
      const text = textOf(params);
      return {
        request: text === undefined ? { rule: EVERY_STRING } : { text, isPart: isBatch, rule: request },
        response: isBatch ? { text: texts[index] ?? '', isPart: true, rule: response } : { rule: response },
        maskQuery: isGet ? maskQuery : undefined,
      };
    });
  }

  #rulesOf(params: unknown, isRun: boolean): OperationRules {
    const document = isRecord(params) ? this.#valid.get(params) : undefined;
    if (document === undefined || !isRecord(params)) return rulesOfInvalid(params);
    const isGood = isRun || hasGoodVariables(this.#schema, document, params);
    return isGood ? rulesOfValid(document, params) : rulesOfInvalid(params);
  }
}

/** The JSON of parameters; undefined where they are too deep to be written. */
function textOf(params: unknown): string | undefined {
  try {
    return JSON.stringify(params);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** A result with data, or a stream of results: the variables did hold. */
function hasRun(result: unknown): boolean {
  return isRecord(result) && ('data' in result || Symbol.asyncIterator in result);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
