import {
  type ArgumentNode,
  type ASTNode,
  type DocumentNode,
  Kind,
  type ObjectFieldNode,
  parse,
  print,
  type StringValueNode,
  visit,
} from 'graphql';
import { parseJson } from '../../../src/lib/json.ts';
import { SECRET_NAME } from './secret-operations.ts';

export type Params = Readonly<Record<string, unknown>>;

/** What a record shows of a valid operation: nothing is masked but what the name of a secret stands for. */
interface ExpectedRecord {
  document: string;
  params: Params;
  results: readonly object[];
}

/** The parts of a record of a valid operation, given the JSON of its parameters and its answer. */
export function recordParts(text: string, answer: string): ExpectedRecord {
  const { query, ...params } = JSON.parse(text);
  return { document: print(parse(query)), params, results: resultsOf(answer) };
}

export function expectedParts(sent: Params, results: readonly object[], isMasked: boolean): ExpectedRecord {
  const { query, ...params } = sent;
  const { document, variables, aliases } = maskedDocument(parse(String(query)));
  const isVariable = (name: string, holder: unknown) => holder === params.variables && variables.has(name);
  // A message may quote what is masked.
  const isAlias = (name: string) => aliases.has(name) || (isMasked && name === 'message');
  return { document: print(document), params: masked(params, isVariable), results: masked(results, isAlias) };
}

/** Whether a string of a valid operation begins as a document and is none: what is recorded of it ends at its fault. */
export function hasBrokenText({ query, ...params }: Params): boolean {
  let isBroken = false;
  function look(text: unknown): void {
    isBroken ||= typeof text === 'string' && /^\s*[[{"]/.test(text) && parsed(text) === undefined;
  }
  visit(parse(String(query)), { StringValue: ({ value }) => look(value) });
  JSON.stringify(params, (_name, value) => {
    look(value);
    return value;
  });
  return isBroken;
}

/** The results in an answer: one, or the lines of a stream. */
export function resultsOf(answer: string): object[] {
  return answer.split('\n').flatMap((line) => parsed(line.replace(/^data: /, '')) ?? []);
}

export function withoutMessages(results: readonly object[]): readonly object[] {
  return masked(results, (name) => name === 'message');
}

/** The object or list of a JSON text; undefined if it has none. */
export function parsed(text: string): object | undefined {
  try {
    const value: unknown = parseJson(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

const MASKED: StringValueNode = { kind: Kind.STRING, value: '***' };

/** A document with its secrets masked, and the variables and aliases that stand for some. */
function maskedDocument(document: DocumentNode) {
  const variables = new Set<string>();
  const aliases = new Set<string>();
  function maskNamed(node: ArgumentNode | ObjectFieldNode): ASTNode | undefined {
    if (!SECRET_NAME.test(node.name.value)) return undefined;
    visit(node.value, { Variable: ({ name }) => void variables.add(name.value) });
    return node.value.kind === Kind.VARIABLE ? undefined : { ...node, value: MASKED };
  }
  const named: DocumentNode = visit(document, {
    Argument: maskNamed,
    ObjectField: maskNamed,
    StringValue: (node, key) => (key === 'description' ? MASKED : { ...node, value: maskedText(node.value) }),
    Field: ({ alias, name }) => void (alias && SECRET_NAME.test(name.value) && aliases.add(alias.value)),
  });
  const isSecret = (name: string) => variables.has(name) || SECRET_NAME.test(name);
  const all = visit(named, {
    VariableDefinition: (node) =>
      node.defaultValue && isSecret(node.variable.name.value) ? { ...node, defaultValue: MASKED } : undefined,
  });
  return { document: all, variables, aliases };
}

/** A JSON value with the value of each secret name masked, and of further members. */
function masked<Value>(value: Value, isMember: (name: string, holder: unknown) => boolean): Value {
  const text = JSON.stringify(value, function mask(this: unknown, name: string, member: unknown) {
    if (SECRET_NAME.test(name) || isMember(name, this)) return '***';
    return typeof member === 'string' ? maskedText(member) : member;
  });
  return JSON.parse(text);
}

/** A string, masked if it is a document. */
function maskedText(text: string): string {
  const value = parsed(text);
  return value ? JSON.stringify(masked(value, () => false)) : text;
}
