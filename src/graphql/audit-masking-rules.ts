import { type DocumentNode, type GraphQLSchema, getOperationAST } from 'graphql';
import { hidesOperation, maskOperationQuery } from '../audit/mask-form.ts';
import { maskJson } from '../audit/mask-json.ts';
import { EVERY_STRING, HIDDEN, type JsonRule, membersRule } from '../audit/mask-json-rules.ts';
import { isSecretKey, MASK } from '../audit/mask-keys.ts';
import { maskSpelled } from '../audit/mask-part.ts';
import { type DocumentMask, documentMaskOf } from './audit-masking-document.ts';
import { messageMask } from './audit-masking-messages.ts';
import { maskUnparsed, type UnparsedMask } from './audit-masking-unparsed.ts';
import { areVariablesGood } from './variables.rules.ts';

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

/** The rules of an operation whose document is valid, and whose variables hold. */
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

/** The rules of what was not found valid: every string may be a secret in a wrong place. */
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

/** Whether the variables of a valid document hold: otherwise a secret may stand in a wrong place. */
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

function isObject(value: unknown): value is Params {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
