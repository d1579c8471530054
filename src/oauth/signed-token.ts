import type { TokenClass } from '../config/secrets.ts';

/** A token whose signature holds; its claims are not judged yet. */
export interface SignedToken {
  tokenClass: TokenClass;
  claims: Readonly<Record<string, unknown>>;
}
