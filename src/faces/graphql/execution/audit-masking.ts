import { type DocumentNode, type GraphQLSchema, getOperationAST } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { hidesOperation, maskOperationQuery, maskSpelled } from '../../../audit/mask-form.ts';
import { EVERY_STRING, HIDDEN, type JsonRule, maskJson, membersRule } from '../../../audit/mask-json.ts';
import { isSecretKey, MASK } from '../../../audit/mask-keys.ts';
import type { AuditedOperation, Exchange } from '../../../gateway/exchange/exchange.ts';
import { isObject } from '../../shared/nested-values.ts';
import { type DocumentMask, documentMaskOf } from './audit-masking-document.ts';
import { maskUnparsed, messageMask, type UnparsedMask } from './audit-masking-unparsed.ts';
import { areVariablesGood } from './compiled-operations.ts';
import type { OperationParams } from './document-limits.ts';
import type { GraphqlHttpRequest } from './http-requests.ts';

/** What is hidden of an operation, beside the values of secret keys. */
export interface OperationRules {
  /** Of `{query, variables, operationName, extensions}`. */
  request: JsonRule | undefined;
  /** Of `{data, errors}`. */
  response: JsonRule | undefined;
  /** Masks the query string of a GET. */
  maskQuery(query: string): string;
}

/** What a request says of an operation, whatever it is. */
type Params = Readonly<Record<string, unknown>>;

const NAME = /^[_A-Za-z][_0-9A-Za-z]*$/;
const OPERATION_NAME: JsonRule = { kind: 'text', mask: (name) => (NAME.test(name) ? name : MASK) };

/** Returns the masking rules of an operation whose document and variables are valid. */
export function rulesOfValid(document: DocumentNode, params: Params): OperationRules {
  const mask = documentMaskOf(document);
  const shown = mask?.text ?? String(params.query);
  const variables = mask && variablesRule(mask);
  return {
    request: mask && membersRule({ query: { kind: 'text', mask: () => shown }, variables }),
    response: mask && membersRule({ data: mask.data, errors: errorsRule(() => hiddenOf(mask, params.variables)) }),
    maskQuery: (query) =>
      maskOperationQuery(query, (name, value) => {
        if (name === 'query') return value === params.query ? shown : MASK;
        if (name === 'variables') return maskJson(value, undefined, variables).text;
        return name === 'extensions' ? undefined : (hidesOperation(name) ?? maskSpelled(value));
      }),
  };
}

/** Returns the masking rules of an invalid operation. They hide every string, since any may be a secret in the wrong place. */
export function rulesOfInvalid(params: unknown): OperationRules {
  const document = isObject(params) && typeof params.query === 'string' ? params.query : '';
  let made: UnparsedMask | undefined;
  const unparsed = () => {
    made ??= maskUnparsed(document);
    return made;
  };
  const query: JsonRule = { kind: 'text', mask: (text) => (text === document ? unparsed().text : MASK) };
  return {
    request: isObject(params) ? membersRule({ query, operationName: OPERATION_NAME }, EVERY_STRING) : EVERY_STRING,
    response: membersRule({ errors: errorsRule(() => unparsed().hidden.union(stringsOf(params))) }),
    maskQuery: (text) =>
      maskOperationQuery(text, (name, value) => {
        if (name === 'operationName' && NAME.test(value)) return value;
        if (name === 'query' && value === document) return unparsed().text;
        return name === 'variables' ? maskJson(value, undefined, EVERY_STRING).text : MASK;
      }),
  };
}

/** Whether the variables of a valid document are valid; if not, a secret may stand in the wrong place. */
export function hasGoodVariables(schema: GraphQLSchema, document: DocumentNode, params: Params): boolean {
  const { operationName, variables } = params;
  const operation = getOperationAST(document, typeof operationName === 'string' ? operationName : undefined);
  if (!operation || !(variables === undefined || variables === null || isObject(variables))) return false;
  return areVariablesGood(schema, operation, variables ?? {});
}

function variablesRule({ variables }: DocumentMask): JsonRule | undefined {
  return variables.size === 0
    ? undefined
    : membersRule(Object.fromEntries([...variables].map((name) => [name, HIDDEN])));
}

function errorsRule(hidden: () => ReadonlySet<string>): JsonRule {
  return { kind: 'text', mask: messageMask(hidden) };
}

/** The literals and the values of variables that a valid operation's record hides. */
function hiddenOf(mask: DocumentMask, variables: unknown): ReadonlySet<string> {
  const values = new Set(mask.hidden);
  collect(variables, false, (key) => isSecretKey(key) || mask.variables.has(key), values);
  return values;
}

/** Every string of a request, and what stands under the name of a secret. */
function stringsOf(params: unknown): ReadonlySet<string> {
  const values = new Set<string>();
  collect(
    isObject(params) ? { ...params, query: undefined, operationName: undefined } : params,
    true,
    isSecretKey,
    values,
  );
  return values;
}

/** Gathers the strings of a JSON value, if `all`, and every scalar below a hidden key. The stack is its own: a value may be deep. */
function collect(root: unknown, all: boolean, isHidden: (key: string) => boolean, values: Set<string>): void {
  const open = [{ value: root, isBelow: false }];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const { value, isBelow } = node;
    if (typeof value === 'string') {
      if (all || isBelow) values.add(value);
    } else if (typeof value === 'number') {
      if (isBelow) values.add(String(value));
    } else if (Array.isArray(value)) {
      for (const item of value) open.push({ value: item, isBelow });
    } else if (isObject(value)) {
      for (const [key, member] of Object.entries(value))
        open.push({ value: member, isBelow: isBelow || isHidden(key) });
    }
  }
}

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

/** Decides what the audit records of operations may show. It follows each operation from its request to its result. */
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
    exchange.audit.operations = () => this.#operationsOf(request);
  }

  /** Yoga plugin: learns which operations came, and which of them are valid. */
  plugin(): Plugin<OperationParams, GraphqlHttpRequest> {
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
    const document = isObject(params) ? this.#valid.get(params) : undefined;
    if (document === undefined || !isObject(params)) return rulesOfInvalid(params);
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
  return typeof result === 'object' && result !== null && ('data' in result || Symbol.asyncIterator in result);
}
