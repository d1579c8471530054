import type { ClientRecord } from '../../clients/client-record.ts';
import { AppError } from '../../errors/app-error.ts';
import { isUuid } from '../../lib/input.ts';
import type { Supervisors } from '../../supervisors/supervisors.service.ts';
import { type RefreshClaims, refreshClaims } from '../refresh.rules.ts';
import type { Sessions } from '../sessions.ts';
import type { SignedToken } from '../signed-token.ts';
import type { TokenIssuer } from '../token-issuer.ts';
import type { TokenVerifier } from '../token-verifier.ts';
import type { Grant, Granted } from './grant.ts';

interface RefreshGrantParts {
  verifier: TokenVerifier;
  supervisors: Supervisors;
  sessions: Sessions;
  issuer: TokenIssuer;
  nowMs(): number;
}

/** Another pair of the same kind (RFC 6749 section 6), with permissions read anew. */
export function refreshTokenGrant(parts: RefreshGrantParts): Grant {
  return {
    grantType: 'refresh_token',
    async handle(request, client) {
      if (request.grant_type !== 'refresh_token') return undefined;
      const signed = await signedOrUndefined(parts.verifier, request.refresh_token);
      const claims = signed && refreshClaims(signed.claims, parts.nowMs());
      if (!claims || claims.clientId !== client.clientId || claims.nodeId !== client.nodeId) return undefined;
      return claims.sessionId === undefined
        ? refreshClient(parts, claims, client)
        : refreshLogin(parts, claims, client);
    },
  };
}

async function signedOrUndefined(verifier: TokenVerifier, token: string): Promise<SignedToken | undefined> {
  try {
    return await verifier.verify(token, ['user']);
  } catch (error) {
    if (error instanceof AppError && error.status === 401) return undefined;
    throw error;
  }
}

async function refreshClient(
  { issuer }: RefreshGrantParts,
  claims: RefreshClaims,
  { clientId, nodeId, scopes, tokenExpiry }: ClientRecord,
): Promise<Granted | undefined> {
  if (claims.subject !== clientId) return undefined;
  const response = await issuer.forClient({ subject: clientId, nodeId, clientId, scopes }, tokenExpiry);
  return { response, isApi: true };
}

async function refreshLogin(
  { supervisors, sessions, issuer }: RefreshGrantParts,
  { subject, sessionId = '' }: RefreshClaims,
  { clientId, nodeId }: ClientRecord,
): Promise<Granted | undefined> {
  if (!isUuid(subject) || !isUuid(sessionId)) return undefined;
  const supervisor = await supervisors.find(nodeId, subject);
  if (!supervisor?.active) return undefined;
  const { supervisorId, permissions } = supervisor;
  const expiresAtMs = issuer.loginEndsAtMs();
  const live = await sessions.prolong({ sessionId, nodeId, supervisorId, clientId, expiresAtMs });
  if (!live) return undefined;
  const grantee = { subject: supervisorId, nodeId, clientId, scopes: permissions };
  return { response: await issuer.forLogin(grantee, sessionId), isApi: false };
}
