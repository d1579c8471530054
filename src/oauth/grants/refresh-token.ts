import type { ClientRecord } from '../../clients/client-record.ts';
import { isUuid } from '../../lib/input.ts';
import type { RefreshClaims } from '../refresh.rules.ts';
import { isOfClient, type RefreshTokens } from '../refresh-tokens.ts';
import type { Revocations } from '../revocations.ts';
import type { Sessions } from '../sessions.ts';
import type { SpentTokens } from '../spent-tokens.ts';
import type { TokenIssuer } from '../token-issuer.ts';
import type { Grant, Granted } from './grant.ts';

interface RefreshGrantParts {
  refreshTokens: RefreshTokens;
  spent: SpentTokens;
  revocations: Revocations;
  sessions: Sessions;
  issuer: TokenIssuer;
}

/** A refresh token that its client redeems. */
interface Redemption {
  token: string;
  claims: RefreshClaims;
  client: ClientRecord;
}

/** Another pair of the same kind (RFC 6749 section 6), with permissions read anew. */
export function refreshTokenGrant(parts: RefreshGrantParts): Grant {
  return {
    grantType: 'refresh_token',
    async handle(request, client) {
      if (request.grant_type !== 'refresh_token') return undefined;
      const token = request.refresh_token;
      const claims = await parts.refreshTokens.claimsOf(token, client);
      if (!claims) return undefined;
      const redemption = { token, claims, client };
      return isOfClient(claims) ? refreshClient(parts, redemption) : refreshLogin(parts, redemption);
    },
  };
}

async function refreshClient(parts: RefreshGrantParts, redemption: Redemption): Promise<Granted | undefined> {
  const { claims, client } = redemption;
  if (!(await isStillGood(parts, redemption))) return undefined;
  return { response: parts.issuer.forClient(client, claims.familyId ?? claims.tokenId), isApi: true };
}

async function refreshLogin(parts: RefreshGrantParts, redemption: Redemption): Promise<Granted | undefined> {
  const { refreshTokens, sessions, issuer } = parts;
  const { claims, client } = redemption;
  const supervisor = await refreshTokens.supervisorOf(claims, client);
  if (!supervisor || !(await isStillGood(parts, redemption))) return undefined;
  const { supervisorId, nodeId, permissions } = supervisor;
  const { sessionId } = claims;
  if (sessionId === undefined || !isUuid(sessionId)) return undefined;
  const session = {
    sessionId,
    nodeId,
    supervisorId,
    clientId: client.clientId,
    expiresAtMs: issuer.loginEndsAtMs(),
  };
  // One without `iat` is from before there were sessions: it begins one, unless another redemption just has.
  const isLive =
    (await sessions.prolong(session)) ||
    (claims.issuedAt === undefined &&
      ((await sessions.open(session, supervisor)) || (await sessions.prolong(session))));
  if (!isLive) return undefined;
  return { response: issuer.forLogin({ supervisorId, permissions, sessionId }, client), isApi: false };
}

/** Spends a token that is good for once. Whoever comes later with it may have stolen it: what it belongs to ends. */
async function isStillGood(
  { spent, revocations }: RefreshGrantParts,
  { token, claims, client }: Redemption,
): Promise<boolean> {
  if (!spent.isForOnce(client, claims) || (await spent.spend(token, claims))) return true;
  if (client.refreshReuseDetection) await revocations.revokeFamily(claims, client);
  return false;
}
