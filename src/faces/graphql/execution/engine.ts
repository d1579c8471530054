import {
  BREAK,
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  executeSubscriptionEvent,
  GraphQLBoolean,
  GraphQLError,
  GraphQLInt,
  type GraphQLNullableInputType,
  type GraphQLSchema,
  getNullableType,
  getOperationAST,
  getVariableValues,
  isEnumType,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  type SelectionSetNode,
  type Source,
  specifiedRules,
  TypeInfo,
  type ValidatedSubscriptionArgs,
  validate,
  validateSubscriptionArgs,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import type { GraphqlContext } from '../kit/graphql-context.ts';
import { fragmentsOf, limitError } from './documents.ts';
import { OperationObserver } from './operation-observer.ts';
import { type Awaitable, ResultStream, resultKeyOf, SharedResults } from './shared-results.ts';

/** The maximum number of lexical tokens in a document. */
const MAX_TOKENS = 1_000;

/**
 * Checks whether a document may have more than 1,000 comments: the parser makes a token of each, but does not count it.
 * A `#` inside a string counts as well.
 */
export function hasManyComments(document: string): boolean {
  let count = 0;
  for (let at = document.indexOf('#'); at !== -1; at = document.indexOf('#', at + 1)) {
    count += 1;
    if (count > MAX_TOKENS) return true;
  }
  return false;
}

/** The beginning of the parser's error for too many tokens, which only its message identifies. */
const TOO_MANY_TOKENS = `Syntax Error: Document contains more than ${MAX_TOKENS} tokens`;

/** The maximum number of validation errors of a document. */
const MAX_FAULTS = 20;

/**
 * The maximum number of errors about an operation's variables; each message quotes the whole object that it concerns.
 */
const MAX_VARIABLE_FAULTS = 5;

interface EngineOptions {
  introspection: boolean;
  /** Whether errors suggest no names of the schema. */
  hideSuggestions: boolean;
  /** Measures and traces operations. */
  observer?: OperationObserver | undefined;
}

/** Creates the functions that parse, validate and execute operations, for Envelop's `useEngine`. */
export function createEngine({ introspection, hideSuggestions, observer = new OperationObserver() }: EngineOptions) {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  const answers = new SharedResults((event) => observer.deliveryOf(event));
  const settings = { hideSuggestions, options: { maxCoercionErrors: MAX_VARIABLE_FAULTS } };
  const operations = new CompiledOperations((args) => execute({ ...args, ...settings }));
  return {
    parse: parseWithinLimits,
    validate: (schema: GraphQLSchema, document: DocumentNode) =>
      validate(schema, document, rules, { maxErrors: MAX_FAULTS, hideSuggestions }),
    execute: (args: ExecutionArgs) => observer.run(args, (given) => operations.run(given)),
    subscribe: (args: ExecutionArgs) => observer.run(args, (given) => subscribe({ ...given, ...settings }, answers)),
  };
}

function parseWithinLimits(source: string | Source): DocumentNode {
  if (hasManyComments(typeof source === 'string' ? source : source.body)) {
    throw limitError(`the document has more than ${MAX_TOKENS} comments`);
  }
  try {
    return parse(source, { maxLexicalTokens: MAX_TOKENS });
  } catch (error) {
    if (!(error instanceof GraphQLError && error.message.startsWith(TOO_MANY_TOKENS))) throw error;
    throw limitError(`the document has more than ${MAX_TOKENS} tokens`);
  }
}

/**
 * Begins a subscription. Each event is executed in a fresh context, so that no loader reuses what an earlier event has
 * read, and once for all subscribers with the same key. That context contains nothing of the subscriber but what the
 * key is made from.
 */
async function subscribe(args: ExecutionArgs, answers: SharedResults): Promise<ResultStream | ExecutionResult> {
  const validated = validateSubscriptionArgs(args);
  if (!('schema' in validated)) return { errors: validated };
  const source = await createSourceEventStream(validated);
  if (!(Symbol.asyncIterator in source)) return source;
  const key = resultKeyOf(validated, (validated.contextValue as GraphqlContext).principal);
  return new ResultStream(source, (event) =>
    answers.answer(event, key, () => execution({ ...validated, rootValue: event })),
  );
}

function execution(args: ValidatedSubscriptionArgs): ReturnType<typeof executeSubscriptionEvent> {
  const { principal, services } = args.contextValue as GraphqlContext;
  const contextValue: GraphqlContext = { principal, caller: undefined, services };
  // Other subscribers may wait for the result when this one has left.
  return executeSubscriptionEvent({ ...args, contextValue, externalAbortSignal: undefined });
}

/** Checks whether the variables are valid for the operation; stops at the first invalid one. */
export function areVariablesGood(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): boolean {
  if (variableDefinitions.length === 0) return true;
  try {
    // One error is enough: each message quotes the whole object that it concerns.
    const options = { maxErrors: 0, hideSuggestions: true };
    return getVariableValues(schema, variableDefinitions, variables, options).errors === undefined;
  } catch {
    return false;
  }
}

/** The maximum number of fields of an operation that is compiled; longer code would take too long to generate. */
const MAX_FIELDS = 150;

/**
 * The maximum length, in characters, of a name in a compiled document; the code repeats the names on the path to each
 * field.
 */
const MAX_NAME_LENGTH = 64;

const TYPENAME = '__typename';

/**
 * Checks whether a valid document may be compiled. Nothing that a caller writes may reach generated code as text, so
 * the only literals allowed are integers, booleans, null and enum values, and the only names are short ones without a
 * special meaning in JavaScript. Compiled code also supports neither directives nor introspection fields, writes other
 * literals as 64-bit floats, and identifies fields by the names on their path joined with `_`, which response names
 * must therefore not contain.
 */
function isPlain(schema: GraphQLSchema, document: DocumentNode): boolean {
  const types = new TypeInfo(schema);
  const isGiven = (holds: (type: GraphQLNullableInputType) => boolean) => () => {
    const type = types.getInputType();
    return type && holds(getNullableType(type)) ? undefined : stop();
  };
  let plain = true;
  const stop = () => {
    plain = false;
    return BREAK;
  };
  visit(
    document,
    visitWithTypeInfo(types, {
      Name: ({ value }) =>
        value.length > MAX_NAME_LENGTH || (value.startsWith('__') && value !== TYPENAME) ? stop() : undefined,
      Field: ({ name, alias }) => {
        const { value } = alias ?? name;
        return value.includes('_') && value !== TYPENAME ? stop() : undefined;
      },
      Directive: stop,
      IntValue: isGiven((type) => type === GraphQLInt),
      BooleanValue: isGiven((type) => type === GraphQLBoolean),
      EnumValue: isGiven(isEnumType),
      StringValue: stop,
      FloatValue: stop,
      ListValue: stop,
      ObjectValue: stop,
    }),
  );
  return plain;
}

/** Counts the fields of an operation with its fragments unfolded; in a valid document fragments form no cycle. */
function unfoldedFields(document: DocumentNode, operation: OperationDefinitionNode): number {
  const fragments = fragmentsOf(document);
  const counted = new Map<string, number>();
  const ofFragment = (name: string): number => {
    const known = counted.get(name);
    if (known !== undefined) return known;
    const fragment = fragments.get(name);
    const count = fragment ? ofSelections(fragment.selectionSet) : 0;
    counted.set(name, count);
    return count;
  };
  const ofSelections = ({ selections }: SelectionSetNode): number =>
    selections.reduce((sum, selection) => {
      switch (selection.kind) {
        case Kind.FIELD:
          return sum + 1 + (selection.selectionSet ? ofSelections(selection.selectionSet) : 0);
        case Kind.INLINE_FRAGMENT:
          return sum + ofSelections(selection.selectionSet);
        case Kind.FRAGMENT_SPREAD:
          return sum + ofFragment(selection.name.value);
        default:
          return selection satisfies never;
      }
    }, 0);
  return ofSelections(operation.selectionSet);
}

/** The number of runs before an operation is compiled; most operations that run once never run again. */
const RUNS_BEFORE = 2;
/** The maximum number of fields of all compiled operations together; each field takes about 7 KB. */
const MAX_FIELDS_KEPT = 3_000;

type Result = Awaitable<ExecutionResult>;
type Run = (root: unknown, context: unknown, variables: unknown) => Result;

interface Compiled {
  run: Run;
  fields: number;
}

/**
 * Runs frequent queries as compiled code, with the same results as graphql-js. An operation that cannot be compiled, or
 * that turns out to be invalid, is executed by graphql-js instead.
 */
export class CompiledOperations {
  readonly #reference: (args: ExecutionArgs) => Result;
  readonly #runs = new WeakMap<OperationDefinitionNode, number>();
  readonly #refused = new WeakSet<OperationDefinitionNode>();
  /** The compiled operations, the least recently used first. */
  readonly #compiled = new Map<OperationDefinitionNode, Compiled>();
  #fieldsKept = 0;

  /** @param reference graphql-js's own executor */
  constructor(reference: (args: ExecutionArgs) => Result) {
    this.#reference = reference;
  }

  run(args: ExecutionArgs): Result {
    const { schema, document, operationName, rootValue, contextValue, variableValues } = args;
    const operation = getOperationAST(document, operationName);
    const run = operation?.operation === OperationTypeNode.QUERY ? this.#runOf(operation, args) : undefined;
    // Compiled code would collect every error of the variables, however many.
    if (!operation || !run || !areVariablesGood(schema, operation, variableValues ?? {})) return this.#reference(args);
    const result = run(rootValue, contextValue, variableValues);
    const settle = (given: ExecutionResult) => (given.errors ? this.#failed(given, given.errors, args) : given);
    return result instanceof Promise ? result.then(settle) : settle(result);
  }

  /**
   * Executes an operation again with graphql-js, for its exact errors. If a resolver has failed, it returns the errors
   * of the compiled code instead.
   */
  #failed({ data }: ExecutionResult, errors: readonly GraphQLError[], args: ExecutionArgs): Result {
    const hasFailed = errors.some(({ originalError }) => originalError && !(originalError instanceof GraphQLError));
    if (!hasFailed) return this.#reference(args);
    return { errors: errors.map((error) => asGraphqlError(error, args.document)), data: data ?? null };
  }

  #runOf(operation: OperationDefinitionNode, args: ExecutionArgs): Run | undefined {
    const known = this.#compiled.get(operation);
    if (known) {
      this.#compiled.delete(operation);
      this.#compiled.set(operation, known);
      return known.run;
    }
    if (this.#refused.has(operation)) return undefined;
    const runs = (this.#runs.get(operation) ?? 0) + 1;
    this.#runs.set(operation, runs);
    if (runs <= RUNS_BEFORE) return undefined;
    const compiled = compile(operation, args);
    if (compiled) this.#keep(operation, compiled);
    else this.#refused.add(operation);
    return compiled?.run;
  }

  #keep(operation: OperationDefinitionNode, compiled: Compiled): void {
    this.#compiled.set(operation, compiled);
    this.#fieldsKept += compiled.fields;
    for (const [oldest, { fields }] of this.#compiled) {
      if (this.#fieldsKept <= MAX_FIELDS_KEPT) return;
      this.#compiled.delete(oldest);
      this.#runs.delete(oldest);
      this.#fieldsKept -= fields;
    }
  }
}

function compile(operation: OperationDefinitionNode, args: ExecutionArgs): Compiled | undefined {
  const { schema, document, operationName } = args;
  const fields = unfoldedFields(document, operation);
  if (fields > MAX_FIELDS || !isPlain(schema, document)) return undefined;
  const compiled = compileQuery(schema, document, operationName ?? '', { disablingCapturingStackErrors: true });
  return isCompiledQuery(compiled) ? { run: compiled.query as Run, fields } : undefined;
}

/** Returns an error of compiled code, which has only lines and columns, as an error of graphql-js. */
function asGraphqlError(error: GraphQLError, { loc }: DocumentNode): GraphQLError {
  const { message, locations = [], path, originalError, extensions } = error;
  const body = loc?.source.body ?? '';
  const lineStarts = [0, ...body.matchAll(/\r\n|[\n\r]/g).map((end) => end.index + end[0].length)];
  const positions = locations.map(({ line, column }) => (lineStarts[line - 1] ?? 0) + column - 1);
  return new GraphQLError(message, { source: loc?.source, positions, path, originalError, extensions });
}
