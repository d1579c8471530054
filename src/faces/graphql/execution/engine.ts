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
import { fragmentsOf, limitError } from './document-limits.ts';
import { OperationObserver } from './operation-observer.ts';
import { type Awaitable, ResultStream, resultKeyOf, SharedResults } from './shared-results.ts';

/** The maximum number of lexical tokens in a document. */
const MAX_TOKENS = 1_000;

/**
 * Whether a document may have more comments than it may have tokens: the parser counts none of them, and makes a token of
 * each. A `#` within a string counts as well.
 */
export function hasManyComments(document: string): boolean {
  let count = 0;
  for (let at = document.indexOf('#'); at !== -1; at = document.indexOf('#', at + 1)) {
    count += 1;
    if (count > MAX_TOKENS) return true;
  }
  return false;
}

/** How the parser's error begins then: nothing else in it says so. */
const TOO_MANY_TOKENS = `Syntax Error: Document contains more than ${MAX_TOKENS} tokens`;

/** Faults of a document that are told. */
const MAX_FAULTS = 20;

/** Faults of an operation's variables that are told: each message is made with all of the object that it is about. */
const MAX_VARIABLE_FAULTS = 5;

interface EngineOptions {
  introspection: boolean;
  /** Whether errors keep to themselves which names there are. */
  hideSuggestions: boolean;
  /** What measures and traces operations. */
  observer?: OperationObserver | undefined;
}

/** Creates the functions that parse, validate and run operations, for Envelop's `useEngine`. */
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
 * Subscribes, and answers each event of the source with an execution in a context of its own, so that no loader
 * remembers what an earlier event has read; one for all whom the same answer is good for. That context has nothing of
 * its subscriber beyond what the answer's key is made from.
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
  // Others may wait for it when this subscriber has left.
  return executeSubscriptionEvent({ ...args, contextValue, externalAbortSignal: undefined });
}

/** Whether the variables are valid for the operation; stops at the first that is not. */
export function areVariablesGood(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): boolean {
  if (variableDefinitions.length === 0) return true;
  try {
    // One fault is enough: each is told with all of the object that it is in.
    const options = { maxErrors: 0, hideSuggestions: true };
    return getVariableValues(schema, variableDefinitions, variables, options).errors === undefined;
  } catch {
    return false;
  }
}

/** Fields from which on an operation is not compiled: its code would be long, and take long to make. */
const MAX_FIELDS = 150;

/** Code has the names on the way to a field several times over. */
const MAX_NAME_LENGTH = 64;

const TYPENAME = '__typename';

/**
 * Whether a valid document may become code. What a caller writes must not reach the source of a program: of literals only
 * whole numbers, booleans, null and enum values pass, which have no text of their own, and of names those alone that are
 * short and mean nothing to JavaScript. Compiled code also knows no directives and no fields of the schema's own, writes
 * other literals as numbers of 64 bits, and tells places of an answer apart by the names on the way, joined with `_`.
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

/** The fields of the operation as if each spread were the fragment itself; a valid document has no circle of them. */
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

/** Runs of an operation before it is compiled: most that come once never come again. */
const RUNS_BEFORE = 2;
/** Fields of all operations that are kept compiled: a field takes some 7 KB. */
const MAX_FIELDS_KEPT = 3_000;

type Result = Awaitable<ExecutionResult>;
type Run = (root: unknown, context: unknown, variables: unknown) => Result;

interface Compiled {
  run: Run;
  fields: number;
}

/**
 * Runs queries that come often as compiled code. That is a faster way to the same answer and nothing else: what it finds
 * at fault, and what it may read in another way, `reference` answers.
 */
export class CompiledOperations {
  readonly #reference: (args: ExecutionArgs) => Result;
  readonly #runs = new WeakMap<OperationDefinitionNode, number>();
  readonly #refused = new WeakSet<OperationDefinitionNode>();
  /** The one that was asked for last stands last. */
  readonly #compiled = new Map<OperationDefinitionNode, Compiled>();
  #fieldsKept = 0;

  /** @param reference graphql's own executor */
  constructor(reference: (args: ExecutionArgs) => Result) {
    this.#reference = reference;
  }

  run(args: ExecutionArgs): Result {
    const { schema, document, operationName, rootValue, contextValue, variableValues } = args;
    const operation = getOperationAST(document, operationName);
    const run = operation?.operation === OperationTypeNode.QUERY ? this.#runOf(operation, args) : undefined;
    // Compiled code would look for every fault of the variables, however many.
    if (!operation || !run || !areVariablesGood(schema, operation, variableValues ?? {})) return this.#reference(args);
    const result = run(rootValue, contextValue, variableValues);
    const settle = (given: ExecutionResult) => (given.errors ? this.#failed(given, given.errors, args) : given);
    return result instanceof Promise ? result.then(settle) : settle(result);
  }

  /** Tries again where the fault was the operation's, and not where something has failed below it. */
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

/** An error of compiled code, which knows lines and columns alone, as one of graphql's own. */
function asGraphqlError(error: GraphQLError, { loc }: DocumentNode): GraphQLError {
  const { message, locations = [], path, originalError, extensions } = error;
  const body = loc?.source.body ?? '';
  const lineStarts = [0, ...body.matchAll(/\r\n|[\n\r]/g).map((end) => end.index + end[0].length)];
  const positions = locations.map(({ line, column }) => (lineStarts[line - 1] ?? 0) + column - 1);
  return new GraphQLError(message, { source: loc?.source, positions, path, originalError, extensions });
}
