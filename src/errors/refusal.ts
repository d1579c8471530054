/** Why a change was not made, in the domain's words; each adapter renders it in its own. */
export type Refusal =
  | { kind: 'not_found' }
  | { kind: 'forbidden'; permission: string; message: string }
  | { kind: 'duplicate'; reason: string; message: string }
  | { kind: 'precondition'; message: string }
  | { kind: 'invalid'; path: string; message: string };

/** Thrown by a domain service that refuses. Nothing was changed. */
export class RefusalError extends Error {
  override name = 'RefusalError';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.kind === 'not_found' ? 'not found' : refusal.message);
    this.refusal = refusal;
  }
}

/** The id names nothing of the node: missing and another node's are one and the same. */
export function notFoundRefusal(): RefusalError {
  return new RefusalError({ kind: 'not_found' });
}
