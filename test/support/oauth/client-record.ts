import { randomUUID } from 'node:crypto';
import type { ClientRecord } from '../../../src/access/identity/callers.ts';

/** A client without limits, but for what is given. */
export function clientRecord(settings: Partial<ClientRecord> = {}): ClientRecord {
  return {
    clientId: randomUUID(),
    nodeId: randomUUID(),
    name: 'Test',
    grantTypes: [],
    scopes: [],
    tokenExpiry: { enabled: true, durationSeconds: 3_600 },
    allowedIps: [],
    requireCertificate: false,
    certFingerprint: undefined,
    limits: { perSecond: 0, perMinute: 0, perHour: 0, perMonth: 0 },
    refreshReuseDetection: false,
    isConsole: false,
    active: true,
    tokensFromSeconds: 0,
    ownTokensFromSeconds: 0,
    ...settings,
  };
}
