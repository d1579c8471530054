import { Refusal } from '../../platform/errors.ts';

/**
 * The reason for which an access token is refused. `malformed`: not a JWT in its one spelling. `signature`: made with
 * none of the keys that its class and key id allow. `another_class`: valid, but not for this endpoint. `audience`: not
 * one known tenant, or another than its client's. `not_admitted`: its client does not exist.
 */
type TokenFault =
  | 'malformed'
  | 'signature'
  | 'another_class'
  | 'invalid_claims'
  | 'audience'
  | 'not_yet_valid'
  | 'expired'
  | 'not_admitted'
  | 'revoked'
  | SecretFault;

/** The reason for which a client secret is refused; the caller is not told it. */
export type SecretFault = 'unknown_client' | 'client_disabled' | 'wrong_secret' | 'expired_secret';

/** The descriptions for callers, only of tokens with a valid signature; for all others the reason is not disclosed. */
const DESCRIPTIONS: Partial<Record<TokenFault, string>> = {
  another_class: 'the token belongs to another class',
  expired: 'the token has expired',
  revoked: 'the token has been revoked',
};

/** Thrown when an access token is refused: `invalid_token` (RFC 6750 section 3.1). */
export class InvalidTokenError extends Refusal {
  /** The reason in words for the caller. */
  readonly description: string;

  /** `detail` follows the description for the caller. */
  constructor(reason: TokenFault, detail = '') {
    const description = `${DESCRIPTIONS[reason] ?? 'the token is not valid'}${detail}`;
    const challenge = `Bearer error="invalid_token", error_description="${description}"`;
    super('unauthorized', { reason, challenge });
    this.description = description;
  }

  /** How a token that was valid before has ended. */
  get end(): 'expired' | 'revoked' {
    return this.details.reason === 'expired' ? 'expired' : 'revoked';
  }
}

/** Makes the error for a token with a valid signature whose class or use the endpoint does not accept. */
export function anotherClass(actual: string, needed: string): InvalidTokenError {
  return new InvalidTokenError('another_class', `: ${actual}, but ${needed} is required`);
}

/** Returns the result of `check`, or undefined when it throws an InvalidTokenError. Any other error is rethrown. */
export async function unlessInvalid<Result>(check: () => Result | Promise<Result>): Promise<Result | undefined> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof InvalidTokenError) return undefined;
    throw error;
  }
}
