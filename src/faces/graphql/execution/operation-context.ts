import type { Plugin } from '@envelop/core';
import type { Principal } from '../../../access/identity/principal.ts';
import { TokenEndedError } from '../../../events/streams/stream-errors.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { GraphqlContext, GraphqlServices } from '../kit/graphql-context.ts';
import { sharedPrincipalOf } from '../kit/result-key.rules.ts';
import type { GraphqlBatch } from './document-limits.ts';

/** An operation as it comes in, over HTTP or a socket. */
export interface OperationRequest {
  exchange: Exchange;
  /** Who sent it: an operation's own context tells less of them. */
  bearer: Principal;
  /** Whether time has passed since the gateway judged the token: on a socket, and in a batch. */
  isLater: boolean;
  /** Those that it came with in one request. */
  batch?: GraphqlBatch;
}

/** Envelop plugin: an operation runs only while its token is good. */
export function useAuthentication(
  recheck: (principal: Principal, exchange: Exchange) => Promise<boolean>,
): Plugin<OperationRequest> {
  return {
    async onContextBuilding({ context }) {
      if (context.isLater && !(await recheck(context.bearer, context.exchange))) throw new TokenEndedError();
    },
  };
}

/** @throws AppError where a guard of the principal's client refuses the operation. */
export type OperationGuard = (principal: Principal, exchange: Exchange) => void | Promise<void>;

/**
 * Envelop plugin: an operation of a socket passes the guards of its client, and so does each of a batch but the first
 * that runs, which the request itself has passed them for, or has been refused for by a limit.
 */
export function useClientGuards(passGuards: OperationGuard): Plugin<OperationRequest> {
  const begun = new WeakSet<Exchange>();
  return {
    async onContextBuilding({ context: { bearer, exchange, isLater, batch } }) {
      if (!isLater) return;
      if (!batch || begun.has(exchange)) return passGuards(bearer, exchange);
      begun.add(exchange);
      if (exchange.found.limitRefusal) throw exchange.found.limitRefusal;
    },
  };
}

/** Envelop plugin: gives each operation the context that fields resolve in. */
export function useOperationContext(services: GraphqlServices): Plugin<OperationRequest & Partial<GraphqlContext>> {
  return {
    onContextBuilding({ context, extendContext }) {
      const { bearer, exchange } = context;
      const lastEventId = exchange.req.headers['last-event-id'];
      const operation: GraphqlContext = {
        principal: sharedPrincipalOf(bearer),
        caller: {
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
