import type { Plugin } from '@envelop/core';
import { AppError } from '../errors/app-error.ts';
import type { Exchange } from '../gateway/exchange.ts';
import type { Principal } from '../oauth/principal.ts';
import { sharedPrincipalOf } from './answer-key.rules.ts';
import type { GraphqlContext, GraphqlServices } from './context.ts';
import { refusedError, unauthenticatedError } from './errors.ts';
import type { Batch } from './limits.ts';

/** What is known of an operation when it arrives. */
export interface Arrival {
  exchange: Exchange;
  /** Who sent it: an operation's own context tells less of them. */
  bearer: Principal;
  /** Whether time has passed since the gateway judged the token: on a socket, and in a batch. */
  isLater: boolean;
  /** Those that it came with in one request. */
  batch?: Batch;
}

/** Envelop plugin: an operation runs only while its token is good. */
export function useAuthentication(
  recheck: (principal: Principal, exchange: Exchange) => Promise<boolean>,
): Plugin<Arrival> {
  return {
    async onContextBuilding({ context }) {
      if (context.isLater && !(await recheck(context.bearer, context.exchange))) throw unauthenticatedError();
    },
  };
}

/** @throws AppError where a guard of the principal's client refuses the operation. */
export type OperationGuard = (principal: Principal, exchange: Exchange) => void | Promise<void>;

/**
 * Envelop plugin: an operation of a socket passes the guards of its client, and so does each of a batch but the first
 * that runs, which the request itself has passed them for, or has been refused for by a limit.
 */
export function useClientGuards(passGuards: OperationGuard): Plugin<Arrival> {
  const begun = new WeakSet<Exchange>();
  return {
    async onContextBuilding({ context: { bearer, exchange, isLater, batch } }) {
      if (!isLater) return;
      try {
        if (!batch || begun.has(exchange)) return await passGuards(bearer, exchange);
        begun.add(exchange);
        if (exchange.limitRefusal) throw exchange.limitRefusal;
      } catch (error) {
        throw error instanceof AppError ? refusedError(error) : error;
      }
    },
  };
}

/** Envelop plugin: gives each operation the context that fields resolve in. */
export function useOperationContext(services: GraphqlServices): Plugin<Arrival & Partial<GraphqlContext>> {
  return {
    onContextBuilding({ context, extendContext }) {
      const { bearer, exchange } = context;
      const lastEventId = exchange.req.headers['last-event-id'];
      const operation: GraphqlContext = {
        principal: sharedPrincipalOf(bearer),
        asker: {
          principal: bearer,
          correlationId: exchange.correlationId,
          traceparent: exchange.span?.traceparent,
          lastEventId: typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : undefined,
        },
        services,
      };
      extendContext(operation);
    },
  };
}
