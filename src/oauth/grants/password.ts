import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Supervisors } from '../../supervisors/supervisors.service.ts';
import type { Passwords } from '../passwords.ts';
import type { Sessions } from '../sessions.ts';
import type { TokenIssuer } from '../token-issuer.ts';
import type { Grant } from './grant.ts';

interface PasswordGrantParts {
  supervisors: Supervisors;
  passwords: Passwords;
  sessions: Sessions;
  issuer: TokenIssuer;
}

/** A supervisor of the client's node (RFC 6749 section 4.3). Unknown, of another node and wrong are one answer. */
export function passwordGrant(parts: PasswordGrantParts): Grant {
  return {
    grantType: 'password',
    async handle(request, client) {
      if (request.grant_type !== 'password') return undefined;
      const supervisor = await parts.supervisors.findByUsername(client.nodeId, request.username);
      const matches = await parts.passwords.verify(request.password, supervisor?.passwordHash);
      if (!supervisor?.active || !matches) return undefined;
      const { supervisorId, nodeId, permissions } = supervisor;
      const { clientId } = client;
      const sessionId = uuidV7();
      const expiresAtMs = parts.issuer.loginEndsAtMs();
      const session = { sessionId, nodeId, supervisorId, clientId, expiresAtMs };
      if (!(await parts.sessions.open(session, supervisor.passwordHash))) return undefined;
      const grantee = { subject: supervisorId, nodeId, clientId, scopes: permissions };
      return { response: await parts.issuer.forLogin(grantee, sessionId), isApi: false };
    },
  };
}
