/**
 * Says how the gateway treats requests to an endpoint, where that follows from its handler and not from `gateway.yaml`.
 * Declared with the route; an absent flag is false or the default.
 */
export interface EndpointFlags {
  /** Whether the endpoint answers even when no audit record can be stored; all others answer 503 then. */
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

/** The flags of routes by their path in `gateway.yaml`, which may name path parameters differently. */
export type FlagsByPath = Readonly<Record<string, EndpointFlags>>;
