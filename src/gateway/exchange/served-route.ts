import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import type { Refusal } from '../../platform/errors.ts';
import type { ErrorEnvelope } from './refusals.ts';

/**
 * What serves a path in this process, and how the gateway treats requests to it where that follows from the handlers
 * and not from `gateway.yaml`. An absent flag is false.
 */
export interface ServedRoute {
  readonly methods: readonly string[];
  /** The path pattern, written as in `gateway.yaml`. */
  readonly path: string;
  /** Runs the handlers, for a request and a response of Express. */
  readonly run: RequestHandler;
  /** Returns the body for an error of a handler; by default the error envelope. */
  readonly errorBody?: (error: Refusal, req: IncomingMessage) => ErrorEnvelope;
  /** Whether the route answers even when no audit record can be stored; all others answer 503 then. */
  readonly servesWhenAuditIsFull?: boolean;
  /**
   * Whether a 429 of the client's rate or quota is left to the handler, as `limitRefusal`. Only the body of a POST
   * shows whether it is one operation, refused as a whole, or a batch, whose operations are counted one by one.
   */
  readonly batch?: boolean;
  /**
   * Whether `errors` is left out of the body of every error response, because the contract lists its members
   * exactly (docs/contract.md, D2-13).
   */
  readonly oauthErrors?: boolean;
  /** The longest body that `readBody` reads, in bytes, instead of the operator's setting; a longer one is a 400. */
  readonly bodyLimit?: number;
}
