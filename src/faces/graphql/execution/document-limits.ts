import type { Plugin } from '@envelop/core';
import { type DocumentNode, GraphQLError, getOperationAST, type OperationDefinitionNode } from 'graphql';
import { MAX_PAGE_SIZE } from '../../../lib/keyset.ts';
import { membersOfWideObject } from '../../shared/nested-values.ts';
import { type Measure, measure, mostRepeats } from './document-limits.rules.ts';

const MAX_DEPTH = 15;
const MAX_ALIASES = 30;
const MAX_DIRECTIVES = 9;
const MAX_REPEATS = 30;
/** An answer of introspection has no `first`: its cost is what the schema holds. */
const MAX_INTROSPECTIONS = 5;

/** The objects that an exact count of them all stands for. */
const COST_OF_A_COUNT = 200;

/** No input has as many. */
const MAX_MEMBERS = 1_000;

/** The maximum number of operations in a batch. */
export const MAX_BATCH = 10;

/** The operations that came in one request. */
export interface GraphqlBatch {
  /** What those cost that have been let in. */
  cost: number;
}

/** The part of an operation's context that its limits are checked by. */
export interface OperationParams {
  params: {
    operationName?: string | null | undefined;
    variables?: Readonly<Record<string, unknown>> | null | undefined;
  };
  batch?: GraphqlBatch;
}

/** Envelop plugin: refuses an operation over a limit before it is validated. */
export function useLimits(maxCost: number): Plugin<OperationParams> {
  const passed = new WeakMap<OperationDefinitionNode, number>();
  return {
    onValidate({ params: { schema, documentAST }, context }) {
      const { batch, params } = context;
      const { operationName, variables } = params;
      const operation = getOperationAST(documentAST, operationName);
      if (batch && operation?.operation === 'subscription') {
        throw limitError('a batch has a subscription: it needs a request of its own');
      }
      refuseWide(variables);
      let cost = operation ? passed.get(operation) : undefined;
      if (cost === undefined) {
        const measured = measure(schema, documentAST, operationName ?? undefined, variables ?? {});
        cost = measured.cost + COST_OF_A_COUNT * measured.counts;
        refuseExcess(measured);
        if (cost > maxCost) throw limitError(`the cost is ${cost}, at most ${maxCost} is allowed`);
        refuseRepeats(documentAST);
        // Nothing but its variables could make it ask for more.
        if (operation && !operation.variableDefinitions?.length) passed.set(operation, cost);
      }
      if (!batch) return;
      const sum = batch.cost + cost;
      if (sum > maxCost) throw limitError(`the cost of the batch is ${sum}, at most ${maxCost} is allowed`);
      batch.cost = sum;
    },
  };
}

/** Returns the error `LIMIT_EXCEEDED`; the message names the limit. */
export function limitError(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'LIMIT_EXCEEDED', http: { status: 400 } } });
}

function refuseRepeats(document: DocumentNode): void {
  const repeats = mostRepeats(document);
  if (repeats > MAX_REPEATS) {
    throw limitError(`a field stands ${repeats} times in one selection, at most ${MAX_REPEATS} are allowed`);
  }
}

/** Refuses an object of very many members: each that is unknown would be told with all of the object. */
function refuseWide(variables: unknown): void {
  const members = membersOfWideObject(variables, MAX_MEMBERS);
  if (members !== undefined) {
    throw limitError(`variables have an object of ${members} members, at most ${MAX_MEMBERS} are allowed`);
  }
}

function refuseExcess(measured: Measure): void {
  const { depth, aliases, directives, introspections, largestPage, smallestPage } = measured;
  if (depth > MAX_DEPTH) throw limitError(`the depth is ${depth}, at most ${MAX_DEPTH} is allowed`);
  if (aliases > MAX_ALIASES) throw limitError(`there are ${aliases} aliases, at most ${MAX_ALIASES} are allowed`);
  if (directives > MAX_DIRECTIVES) {
    throw limitError(`there are ${directives} directives, at most ${MAX_DIRECTIVES} are allowed`);
  }
  if (introspections > MAX_INTROSPECTIONS) {
    throw limitError(`there are ${introspections} fields of introspection, at most ${MAX_INTROSPECTIONS} are allowed`);
  }
  if (largestPage > MAX_PAGE_SIZE || smallestPage < 0) {
    const size = smallestPage < 0 ? smallestPage : largestPage;
    throw limitError(`first or last is ${size}, 0 to ${MAX_PAGE_SIZE} are allowed`);
  }
}
