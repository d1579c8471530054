import type { RequestLimits } from '../../platform/cache/counts.rules.ts';

/** A client as the token endpoint, the guards and the gateway know it. */
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
  active: boolean;
  /** In seconds since the epoch: tokens that were issued before have ended. */
  tokensFromSeconds: number;
  /** The same for tokens of the client itself; never earlier. */
  ownTokensFromSeconds: number;
}
