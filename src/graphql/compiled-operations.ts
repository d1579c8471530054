import {
  BREAK,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type FragmentDefinitionNode,
  GraphQLError,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionSetNode,
  visit,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { areVariablesGood } from './variables.rules.ts';

/** Runs of an operation before it is compiled: most that come once never come again. */
const RUNS_BEFORE = 2;
/** Operations that are kept compiled. */
const MAX_COMPILED = 200;
/** Fields of an operation with its fragments unfolded, from which on it is not compiled: its code would be long. */
const MAX_FIELDS = 500;

type Run = (root: unknown, context: unknown, variables: unknown) => ExecutionResult | Promise<ExecutionResult>;
type Result = ExecutionResult | Promise<ExecutionResult>;

/**
 * Runs queries that come often as compiled code. That is a faster way to the same answer and nothing else: what it finds
 * at fault, and what it may read in another way, `reference` answers.
 */
export class CompiledOperations {
  readonly #reference: (args: ExecutionArgs) => Result;
  readonly #runs = new WeakMap<OperationDefinitionNode, number>();
  /** Undefined: it cannot be compiled. */
  readonly #compiled = new Map<OperationDefinitionNode, Run | undefined>();

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
    return { data: data ?? null, errors: errors.map((error) => asGraphqlError(error, args.document)) };
  }

  #runOf(operation: OperationDefinitionNode, { schema, document, operationName }: ExecutionArgs): Run | undefined {
    if (this.#compiled.has(operation)) return this.#compiled.get(operation);
    const runs = (this.#runs.get(operation) ?? 0) + 1;
    this.#runs.set(operation, runs);
    if (runs <= RUNS_BEFORE) return undefined;
    const compiled = isCompilable(document, operation)
      ? compileQuery(schema, document, operationName ?? '', { disablingCapturingStackErrors: true })
      : undefined;
    const run = compiled && isCompiledQuery(compiled) ? (compiled.query as Run) : undefined;
    const [oldest] = this.#compiled.keys();
    if (this.#compiled.size >= MAX_COMPILED && oldest) this.#compiled.delete(oldest);
    this.#compiled.set(operation, run);
    return run;
  }
}

/** An error of compiled code, which knows lines and columns alone, as one of graphql's own. */
function asGraphqlError(error: GraphQLError, { loc }: DocumentNode): GraphQLError {
  const { message, locations = [], path, originalError, extensions } = error;
  const body = loc?.source.body ?? '';
  const lineStarts = [0, ...body.matchAll(/\r\n|[\n\r]/g).map((end) => end.index + end[0].length)];
  const positions = locations.map(({ line, column }) => (lineStarts[line - 1] ?? 0) + column - 1);
  return new GraphQLError(message, { source: loc?.source, positions, path, originalError, extensions });
}

/**
 * Whether compiled code reads the operation as graphql's executor does. Not so with directives, with the schema's own
 * fields, and with variables inside of a literal.
 */
function isCompilable(document: DocumentNode, operation: OperationDefinitionNode): boolean {
  let isPlain = true;
  const stop = () => {
    isPlain = false;
    return BREAK;
  };
  visit(document, {
    Directive: stop,
    Field: ({ name }) => (name.value === '__schema' || name.value === '__type' ? stop() : undefined),
    Variable: (_node, _key, _parent, _path, ancestors) =>
      ancestors.some((node) => 'kind' in node && (node.kind === Kind.OBJECT || node.kind === Kind.LIST))
        ? stop()
        : undefined,
  });
  return isPlain && unfoldedFields(document, operation) <= MAX_FIELDS;
}

/** The fields of the operation as if each spread were the fragment itself; a valid document has no circle of them. */
function unfoldedFields(document: DocumentNode, operation: OperationDefinitionNode): number {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
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
