import type { Plugin } from '@envelop/core';
import type { Principal } from '../../../access/identity/principal.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { FeatureServices } from '../../shared/services.ts';
import type { OperationRequest } from '../execution/operation-request.ts';
import type { GraphqlContext, SharedPrincipal } from '../kit/graphql-context.ts';

/** The dependencies of the context of operations. */
export interface ContextDependencies {
  services: FeatureServices;
  /**
   * Checks that a token that was valid still is: not expired, not revoked and, on a WebSocket, of an accepted class.
   * @throws InvalidTokenError when it is not.
   */
  recheck: (principal: Principal, exchange: Exchange) => Promise<void>;
  /**
   * Counts an operation of a WebSocket, or another one of a batch, against the client's limits.
   * @throws Refusal 403 or 429 when a client guard refuses, or when a token on a WebSocket lacks a permission of the
   * endpoint.
   */
  passGuards: (principal: Principal, exchange: Exchange) => Promise<void>;
}

/**
 * Creates the Envelop plugin that checks the token and builds the context of fields. It runs the client guards for each
 * operation of a WebSocket and for each of a batch except the first, which the guards of the request itself have
 * covered.
 */
export function useOperationContext({
  recheck,
  passGuards,
  services,
}: ContextDependencies): Plugin<OperationRequest & Partial<GraphqlContext>> {
  async function checkAccess({ bearer, exchange, batch }: OperationRequest): Promise<void> {
    await recheck(bearer, exchange);
    if (!batch || batch.isBegun) return passGuards(bearer, exchange);
    batch.isBegun = true;
    if (exchange.state.limitRefusal) throw exchange.state.limitRefusal;
  }

  return {
    async onContextBuilding({ context, extendContext }) {
      if (context.isLater) await checkAccess(context);
      const { bearer, exchange } = context;
      const lastEventId = exchange.req.headers['last-event-id'];
      const operation: Omit<GraphqlContext, 'perOperation'> = {
        principal: sharedPrincipalOf(bearer),
        caller: {
          ...bearer,
          correlationId: exchange.correlationId,
          traceparent: exchange.span?.traceparent,
          lastEventId: typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : undefined,
          hasIdempotencyKey: false,
          isRefused: false,
        },
        services,
      };
      extendContext(operation);
    },
  };
}

/** Returns the part of a principal that the result of an event may depend on. */
export function sharedPrincipalOf({ nodeId, tokenClass, tokenUse, permissions }: Principal): SharedPrincipal {
  return { nodeId, tokenClass, tokenUse, permissions };
}
