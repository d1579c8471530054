import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  getOperationAST,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { compilableFields } from './compilable.rules.ts';
import { areVariablesGood } from './variables.rules.ts';

/** Runs of an operation before it is compiled: most that come once never come again. */
const RUNS_BEFORE = 2;
/** Fields of all operations that are kept compiled: a field takes some 7 KB. */
const MAX_FIELDS_KEPT = 3_000;

type Run = (root: unknown, context: unknown, variables: unknown) => ExecutionResult | Promise<ExecutionResult>;
type Result = ExecutionResult | Promise<ExecutionResult>;

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
  const fields = compilableFields(schema, document, operation);
  if (fields === undefined) return undefined;
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
