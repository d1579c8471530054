import type { TokenClass } from '../config/secrets.ts';

/** What a token may be used for (decisions: tokens). */
export type TokenUse = 'login' | 'api' | 'forgot_password' | 'refresh';

/** Who a verified access token speaks for. `nodeId` decides what it can see. */
export interface Principal {
  tokenClass: TokenClass;
  tokenUse: Exclude<TokenUse, 'refresh'>;
  subject: string;
  nodeId: string;
  clientId: string | undefined;
  sessionId: string | undefined;
  tokenId: string | undefined;
  /** What an API token and those refreshed from its first pair have in common. */
  familyId: string | undefined;
  /** Whole seconds since the epoch, where the token tells. */
  issuedAt: number | undefined;
  permissions: ReadonlySet<string>;
  /** Milliseconds since the epoch; undefined where the token does not expire. */
  expiresAtMs: number | undefined;
}
