/** A query that the tenant's door does not let through: a fault of the program, never of a caller. */
export class NodeScopeError extends Error {
  override name = 'NodeScopeError';
}

/** The refusal of a kind of statement or a part of one. */
export function refusal(what: string): NodeScopeError {
  return new NodeScopeError(`${what} does not pass the tenant's door`);
}
