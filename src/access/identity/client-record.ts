import type { RequestLimits } from '../../platform/cache/counts.rules.ts';

/** A client as used by the token endpoint, the client guards and the gateway. */
export interface ClientRecord {
  clientId: string;
  nodeId: string;
  name: string;
  grantTypes: readonly string[];
  scopes: readonly string[];
  tokenExpiry: { enabled: boolean; durationSeconds: number };
  allowedIps: readonly string[];
  requireCertificate: boolean;
  certFingerprint: string | undefined;
  limits: RequestLimits;
  refreshReuseDetection: boolean;
  /** Whether only the console's sessions are for it (docs/contract.md, D3-40); it has no secret. */
  isConsole: boolean;
  active: boolean;
  /** The time, in seconds since 1970, from which tokens are valid; earlier ones are revoked. */
  tokensFromSeconds: number;
  /**
   * The time, in seconds since 1970, from which the client's own tokens are valid; never before `tokensFromSeconds`.
   */
  ownTokensFromSeconds: number;
}
