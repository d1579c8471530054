/**
 * Says how the gateway treats the requests of an endpoint, where its handler knows better than `gateway.yaml`. It is declared
 * with the route and reaches the gateway as `Endpoint.flags`; whatever is absent is false or the default.
 */
export interface EndpointFlags {
  /** Answers also while no audit record can be stored; every other endpoint answers 503 then. */
  readonly servesWhenAuditIsFull?: boolean;
  /**
   * Leaves a 429 of the client's limits to the handler, as `limitRefusal`: the body of a POST tells whether it is one
   * operation, which is refused as a whole, or a batch, whose operations are counted one by one.
   */
  readonly batch?: boolean;
  /** Leaves `errors` out of the body of a refusal, whoever refuses: the members of the body are documented exactly (specification section 4.1). */
  readonly oauthErrors?: boolean;
  /** The most bytes of a body that `readBody` reads, where that is not for the operator to say: a longer one is a 400. */
  readonly bodyLimit?: number;
}

/** The flags of routes by their path in `gateway.yaml`; a parameter may have any name. */
export type FlagsByPath = Readonly<Record<string, EndpointFlags>>;
