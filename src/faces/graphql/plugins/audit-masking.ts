import { type DocumentNode, type GraphQLSchema, getOperationAST, Kind, print } from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { hidesOperation, maskOperationQuery, maskSpelled } from '../../../audit/mask-form.ts';
import { EVERY_STRING, HIDDEN, type JsonRule, maskJson, membersRule } from '../../../audit/mask-json.ts';
import { isSecretKey, MASK } from '../../../audit/mask-keys.ts';
import type { AuditedOperation, Exchange } from '../../../gateway/exchange/exchange.ts';
import { isObject } from '../../shared/nested-values.ts';
import { type DocumentMask, maskUnparsed, maskValid } from '../execution/document-masking.ts';
import { areVariablesGood } from '../execution/engine.ts';
import type { OperationParams } from './document-limits.ts';

/** What is masked in the audit record of an operation, in addition to the values of secret keys. */
interface OperationRules {
  /** The rule for `{query, variables, operationName, extensions}`; undefined if only secret keys are masked. */
  request: JsonRule | undefined;
  /** The rule for `{data, errors}`; undefined if only secret keys are masked. */
  response: JsonRule | undefined;
  /** Masks the query string of a GET. */
  maskQuery(query: string): string;
}

/** The parameters of an operation as they were sent, whatever members they have. */
type Params = Readonly<Record<string, unknown>>;

const NAME = /^[_A-Za-z][_0-9A-Za-z]*$/;
const OPERATION_NAME: JsonRule = { kind: 'text', mask: (name) => (NAME.test(name) ? name : MASK) };

/** The masks of valid documents; undefined for a document in which only secret keys are masked. */
const masks = new WeakMap<DocumentNode, DocumentMask | undefined>();

/** Returns the masking rules of an operation whose document and variables are valid. */
export function rulesOfValid(document: DocumentNode, params: Params): OperationRules {
  if (!masks.has(document)) masks.set(document, maskValid(document));
  const mask = masks.get(document);
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

/** Returns the masking rules of an invalid operation. They mask every string, since any may be a misplaced secret. */
export function rulesOfInvalid(params: unknown): OperationRules {
  const document = isObject(params) && typeof params.query === 'string' ? params.query : '';
  let made: ReturnType<typeof maskUnparsed> | undefined;
  function unparsed() {
    made ??= maskUnparsed(document);
    return made;
  }
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

/** Checks the variables of a valid document. If they are invalid, any of them may be a misplaced secret. */
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

/** Returns the rule for error messages, which may quote values of the request. */
function errorsRule(hidden: () => ReadonlySet<string>): JsonRule {
  let forms: readonly string[] | undefined;
  function mask(message: string): string {
    forms ??= formsOf(hidden());
    if (forms.length > MAX_VALUES) return MASK;
    // A syntax error quotes a part of a document that cannot be parsed.
    const readable = message.startsWith(SYNTAX_ERROR) ? message.replace(/".*"|U\+[0-9A-F]+/s, MASK) : message;
    return forms.reduce(without, readable);
  }
  return { kind: 'text', mask };
}

const MAX_VALUES = 1_000;
/**
 * Values shorter than this, in characters, are masked as whole words only, since they may be part of many other words.
 */
const MIN_LENGTH_ANYWHERE = 4;
const SYNTAX_ERROR = 'Syntax Error: ';

/** Returns the forms in which an error message may quote the values, the longest first. */
function formsOf(values: ReadonlySet<string>): readonly string[] {
  if (values.size > MAX_VALUES) return [...values];
  const forms = new Set<string>();
  for (const value of values) {
    const quoted = [JSON.stringify(value), print({ kind: Kind.STRING, value })].map((text) => text.slice(1, -1));
    // A block string may be printed with another indentation, so its lines are searched for singly.
    const lines = value.includes('\n') ? value.split('\n').map((line) => line.trim().replaceAll('"""', '\\"""')) : [];
    for (const form of [value, value.replaceAll('"""', '\\"""'), ...quoted, ...lines]) {
      if (form.trim() !== '') forms.add(form);
    }
  }
  return [...forms].sort((a, b) => b.length - a.length);
}

function without(message: string, form: string): string {
  if (!message.includes(form)) return message;
  if (form.length >= MIN_LENGTH_ANYWHERE) return message.replaceAll(form, MASK);
  return message.replace(new RegExp(`(?<![\\p{L}\\p{N}_])${RegExp.escape(form)}(?![\\p{L}\\p{N}_])`, 'gu'), MASK);
}

/** Returns the literals and the values of variables that the record of a valid operation masks. */
function hiddenOf(mask: DocumentMask, variables: unknown): ReadonlySet<string> {
  const values = new Set(mask.hidden);
  collect(variables, false, (key) => isSecretKey(key) || mask.variables.has(key), values);
  return values;
}

/** Returns every string of a request, and every number below a secret key. */
function stringsOf(params: unknown): ReadonlySet<string> {
  const values = new Set<string>();
  const given = isObject(params) ? { ...params, query: undefined, operationName: undefined } : params;
  collect(given, true, isSecretKey, values);
  return values;
}

/**
 * Collects the strings of a JSON value if `all` is set, and every string and number below a key for which `isHidden`
 * holds. It uses a stack instead of recursion, because a value may be deeply nested.
 */
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

/** A request over HTTP in progress: its operations and the result of each. */
interface Request {
  isGet: boolean;
  /** The parameters of each operation; undefined until the request is parsed. */
  operations: readonly unknown[] | undefined;
  isBatch: boolean;
  results: readonly unknown[];
  /** The JSON of each result of a batch, as it is sent. */
  texts: readonly string[];
}

/** Decides what the audit records of operations may show, following each operation from its request to its result. */
export class OperationAudits {
  readonly #schema: GraphQLSchema;
  readonly #requests = new WeakMap<Exchange, Request>();
  /** The valid documents, by the parameters that they were sent in. */
  readonly #valid = new WeakMap<object, DocumentNode>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** Begins to follow a request. Until its operations are known, its record shows none of its strings. */
  begin(exchange: Exchange): void {
    const isGet = exchange.req.method === 'GET';
    const request: Request = { isGet, operations: undefined, isBatch: false, results: [], texts: [] };
    this.#requests.set(exchange, request);
    exchange.audit.operations = () => this.#operationsOf(request);
  }

  /** Stores the parameters of a request's operation, or of each operation of a batch. */
  came(exchange: Exchange, params: GraphQLParams | GraphQLParams[]): void {
    const isBatch = Array.isArray(params);
    Object.assign(this.#requests.get(exchange) ?? {}, { isBatch, operations: isBatch ? params : [params] });
  }

  /** Creates the Envelop plugin that stores which operations have a valid document. */
  plugin(): Plugin<OperationParams> {
    return {
      onValidate:
        ({ params: { documentAST }, context }) =>
        ({ valid }) => {
          if (valid) this.#valid.set(context.params, documentAST);
        },
    };
  }

  /** Stores the results of a request's operations and, for a batch, the JSON of each. */
  answered(exchange: Exchange, results: readonly unknown[], texts: readonly string[] = []): void {
    Object.assign(this.#requests.get(exchange) ?? {}, { results, texts });
  }

  /** Returns what the audit record of an operation on a WebSocket shows. */
  ofSocket({
    params,
    responseText,
    hasData,
  }: {
    params: object;
    responseText: string;
    hasData: boolean;
  }): AuditedOperation {
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
      // The parsed parameters are written again, because a body may contain a member twice.
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

/** Returns the JSON of parameters; undefined if they are nested too deeply to be written. */
function textOf(params: unknown): string | undefined {
  try {
    return JSON.stringify(params);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Checks whether a result has data or is a stream, which proves that the variables were valid. */
function hasRun(result: unknown): boolean {
  return typeof result === 'object' && result !== null && ('data' in result || Symbol.asyncIterator in result);
}
