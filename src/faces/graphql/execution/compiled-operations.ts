import {
  BREAK,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
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
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionSetNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { fragmentsOf } from './document-limits.rules.ts';

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
 * How many fields a valid operation has, fragments unfolded, where it may become code; undefined where not.
 *
 * What a caller writes must not reach the source of a program: of literals only whole numbers, booleans, null and enum
 * values pass, which have no text of their own, and of names those alone that are short and mean nothing to JavaScript. Compiled code
 * also knows no directives and no fields of the schema's own, writes other literals as numbers of 64 bits, and
 * tells places of an answer apart by the names on the way, joined with `_`.
 */
export function compilableFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): number | undefined {
  const fields = unfoldedFields(document, operation);
  return fields <= MAX_FIELDS && isPlain(schema, document) ? fields : undefined;
}

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
