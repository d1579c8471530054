import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLSchema,
  getVariableValues,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Principal } from '../../../access/identity/callers.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import { type KnownMembers, parsedOrNone } from '../../../lib/json.ts';

/** The members of an operation that GraphQL knows; none of its variables may be repeated. */
export const KNOWN_MEMBERS = {
  ...{ query: {}, operationName: {}, documentId: {}, variables: 'any' },
  extensions: { persistedQuery: { version: {}, sha256Hash: {} } },
} as const satisfies KnownMembers;

/** The state that the operations of one GraphQL batch share. */
export interface GraphqlBatch {
  /** The total cost of the operations that have passed the limits so far. */
  cost: number;
  /** Whether an operation has begun, so that the request itself is counted. */
  isBegun: boolean;
}

/** An operation as it arrives, over HTTP or a WebSocket. */
export interface OperationRequest {
  exchange: Exchange;
  /** The principal that sent the operation. The context of its fields has only a part of it. */
  bearer: Principal;
  /**
   * Whether the token must be checked again, because time has passed since the gateway verified it: on a WebSocket and
   * in a batch.
   */
  isLater: boolean;
  /** The GraphQL batch that the operation came in; undefined outside a batch. */
  batch?: GraphqlBatch;
}

/** Returns the error `LIMIT_EXCEEDED`; the message names the limit. */
export function limitError(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'LIMIT_EXCEEDED' } });
}

/** Returns the error `BAD_REQUEST` for a request that is malformed; the message says what to change. */
export function badRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status: 400 } } });
}

/** Returns the fragments of a document by their names; of several with the same name, the last. */
export function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
  return new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
}

/** Returns the variables that an operation declares. Nothing uses any other. */
export function declaredVariables(
  operation: OperationDefinitionNode | null | undefined,
  variables: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const names = operation?.variableDefinitions?.map(({ variable }) => variable.name.value) ?? [];
  return Object.fromEntries(names.flatMap((name) => (Object.hasOwn(variables, name) ? [[name, variables[name]]] : [])));
}

/** Returns the names of the root fields of an operation, in their order; a fragment that is spread several times counts once. */
export function rootFieldsOf(document: DocumentNode, { selectionSet }: OperationDefinitionNode): string[] {
  const fragments = fragmentsOf(document);
  const passed = new Set<SelectionSetNode>();
  function namesIn(set: SelectionSetNode | undefined): string[] {
    if (!set || passed.has(set)) return [];
    passed.add(set);
    return set.selections.flatMap((selection) => {
      if (selection.kind === Kind.FIELD) return selection.name.value;
      const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
      return namesIn(fragment?.selectionSet);
    });
  }
  return namesIn(selectionSet);
}

/** Checks whether the variables are valid for the operation; stops at the first invalid one. */
export function areVariablesGood(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): boolean {
  if (variableDefinitions.length === 0) return true;
  // One error is enough: each message quotes the whole object that it concerns.
  const options = { maxErrors: 0, hideSuggestions: true };
  const values = parsedOrNone(() => getVariableValues(schema, variableDefinitions, variables, options));
  return values !== undefined && values.errors === undefined;
}
