import type { Plugin } from '@envelop/core';
import { GraphQLError, getOperationAST } from 'graphql';
import { MAX_PAGE_SIZE } from '../lib/keyset.ts';
import { type Measure, measure } from './limits.rules.ts';

const MAX_DEPTH = 15;
const MAX_ALIASES = 30;

/** Operations that one request may bring. */
export const MAX_BATCH = 10;

/** What an operation's context has when it is validated. */
export interface OperationParams {
  params: {
    operationName?: string | null | undefined;
    variables?: Readonly<Record<string, unknown>> | null | undefined;
  };
  isBatch?: boolean;
}

/** Envelop plugin: refuses an operation that asks for too much, before it costs a validation. */
export function useLimits(maxCost: number): Plugin<OperationParams> {
  return {
    onValidate({ params: { schema, documentAST }, context }) {
      const { operationName, variables } = context.params;
      const operation = getOperationAST(documentAST, operationName);
      if (context.isBatch && operation?.operation === 'subscription') {
        throw limitError('a batch has a subscription: it needs a request of its own');
      }
      refuseExcess(measure(schema, documentAST, operationName ?? undefined, variables ?? {}), maxCost);
    },
  };
}

/** The error of a request that is over a limit; the message names the limit. */
export function limitError(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'LIMIT_EXCEEDED', http: { status: 400 } } });
}

function refuseExcess({ depth, aliases, cost, largestPage, smallestPage }: Measure, maxCost: number): void {
  if (depth > MAX_DEPTH) throw limitError(`the depth is ${depth}, at most ${MAX_DEPTH} is allowed`);
  if (aliases > MAX_ALIASES) throw limitError(`there are ${aliases} aliases, at most ${MAX_ALIASES} are allowed`);
  if (largestPage > MAX_PAGE_SIZE || smallestPage < 0) {
    const size = smallestPage < 0 ? smallestPage : largestPage;
    throw limitError(`first or last is ${size}, 0 to ${MAX_PAGE_SIZE} are allowed`);
  }
  if (cost > maxCost) throw limitError(`the cost is ${cost}, at most ${maxCost} is allowed`);
}
