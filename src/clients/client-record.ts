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
  active: boolean;
}
