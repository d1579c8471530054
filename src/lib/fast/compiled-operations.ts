import {
  BREAK,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type execute,
  type FragmentDefinitionNode,
  GraphQLBoolean,
  GraphQLError,
  GraphQLInt,
  type GraphQLNullableInputType,
  type GraphQLSchema,
  getNullableType,
  getOperationAST,
  isEnumType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionSetNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { BoundedMap } from '../bounded-map.ts';

/** The maximum number of fields of an operation that is compiled; longer code would take too long to generate. */
const MAX_FIELDS = 150;

/**
 * The maximum length, in characters, of a name in a compiled document; the code repeats the names on the path to each
 * field.
 */
const MAX_NAME_LENGTH = 64;

const TYPENAME = '__typename';

/**
 * Checks whether a document may be compiled. No text of a caller may reach generated code, so the only literals allowed
 * are integers, booleans, null and enum values, and the only names are short ones that do not begin with two
 * underscores (docs/operations/compiled-operations.md). Compiled code also supports neither directives nor
 * introspection fields, writes other literals as 64-bit floats, and identifies fields by the names on their path joined
 * with `_`, which response names must therefore not contain.
 */
function isPlain(schema: GraphQLSchema, document: DocumentNode): boolean {
  const types = new TypeInfo(schema);
  const checkInputType = (holds: (type: GraphQLNullableInputType) => boolean) => () => {
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
      IntValue: checkInputType((type) => type === GraphQLInt),
      BooleanValue: checkInputType((type) => type === GraphQLBoolean),
      EnumValue: checkInputType(isEnumType),
      StringValue: stop,
      FloatValue: stop,
      ListValue: stop,
      ObjectValue: stop,
    }),
  );
  return plain;
}

/** Counts the fields of an operation with its fragments unfolded; in a valid document fragments form no cycle. */
function unfoldedFields(
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  operation: OperationDefinitionNode,
): number {
  const counted = new Map<string, number>();
  const ofFragment = (name: string): number =>
    counted.getOrInsertComputed(name, () => {
      const fragment = fragments.get(name);
      return fragment ? ofSelections(fragment.selectionSet) : 0;
    });
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

type Result = ReturnType<typeof execute>;
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
  readonly #deps;
  readonly #runs = new WeakMap<OperationDefinitionNode, number>();
  readonly #uncompilable = new WeakSet<OperationDefinitionNode>();
  readonly #compiled = new BoundedMap<OperationDefinitionNode, Compiled>(MAX_FIELDS_KEPT, {
    weightOf: ({ fields }) => fields,
    onDropped: (operation) => this.#runs.delete(operation),
  });

  constructor(deps: {
    /** Executes an operation as graphql-js does. */
    reference: (args: ExecutionArgs) => Result;
    /** Checks whether the variables are valid for the operation. */
    areVariablesGood(
      schema: GraphQLSchema,
      operation: OperationDefinitionNode,
      variables: Readonly<Record<string, unknown>>,
    ): boolean;
    /** Returns the fragments of a document by their names. */
    fragmentsOf(document: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode>;
  }) {
    this.#deps = deps;
  }

  run(args: ExecutionArgs): Result {
    const { schema, document, operationName, rootValue, contextValue, variableValues } = args;
    const { reference, areVariablesGood } = this.#deps;
    const operation = getOperationAST(document, operationName);
    const run = operation?.operation === OperationTypeNode.QUERY ? this.#runOf(operation, args) : undefined;
    // Compiled code would collect every error of the variables, however many.
    if (!operation || !run || !areVariablesGood(schema, operation, variableValues ?? {})) return reference(args);
    const result = run(rootValue, contextValue, variableValues);
    const settle = (executionResult: ExecutionResult) =>
      executionResult.errors ? this.#failed(executionResult, executionResult.errors, args) : executionResult;
    return result instanceof Promise ? result.then(settle) : settle(result);
  }

  /**
   * Executes an operation again with graphql-js, for its exact errors. If a resolver has failed, it returns the errors
   * of the compiled code instead.
   */
  #failed({ data }: ExecutionResult, errors: readonly GraphQLError[], args: ExecutionArgs): Result {
    const hasFailed = errors.some(({ originalError }) => originalError && !(originalError instanceof GraphQLError));
    if (!hasFailed) return this.#deps.reference(args);
    return { errors: errors.map((error) => asGraphqlError(error, args.document)), data: data ?? null };
  }

  #runOf(operation: OperationDefinitionNode, args: ExecutionArgs): Run | undefined {
    const known = this.#compiled.get(operation);
    if (known) return known.run;
    if (this.#uncompilable.has(operation)) return undefined;
    const runs = (this.#runs.get(operation) ?? 0) + 1;
    this.#runs.set(operation, runs);
    if (runs <= RUNS_BEFORE) return undefined;
    const compiled = compile(this.#deps.fragmentsOf(args.document), operation, args);
    if (compiled) this.#compiled.set(operation, compiled);
    else this.#uncompilable.add(operation);
    return compiled?.run;
  }
}

function compile(
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  operation: OperationDefinitionNode,
  { schema, document, operationName }: ExecutionArgs,
): Compiled | undefined {
  const fields = unfoldedFields(fragments, operation);
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
