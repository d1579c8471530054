import type { Principal } from '../../../access/identity/principal.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { KnownMembers } from '../../../lib/json.ts';

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
