/** A client as the token endpoint, the guards and the gateway know it. An absent limit is unlimited. */
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
  rateLimit: { perSecond: number | undefined; perMinute: number | undefined; perHour: number | undefined };
  monthlyLimit: number | undefined;
  refreshReuseDetection: boolean;
  active: boolean;
  /** Whole seconds since the epoch: what was issued before has ended. */
  tokensFromSeconds: number;
  /** The same of the tokens that are no login's; never earlier. */
  ownTokensFromSeconds: number;
}
