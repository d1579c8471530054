import { serviceUnavailable } from '../../errors/app-error.ts';
import { OneAtATime } from '../../lib/one-at-a-time.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { MAX_USERNAME_LENGTH, type SupervisorRecord, type Supervisors } from '../../supervisors/supervisors.service.ts';
import { type LoginLocks, lockName } from '../login-locks.ts';
import type { Passwords } from '../passwords.ts';
import type { Sessions } from '../sessions.ts';
import type { TokenIssuer } from '../token-issuer.ts';
import type { Grant } from './grant.ts';

/** Logins of one username. */
const WAITING = 64;

interface PasswordGrantParts {
  supervisors: Supervisors;
  passwords: Passwords;
  locks: LoginLocks;
  sessions: Sessions;
  issuer: TokenIssuer;
}

interface Login {
  nodeId: string;
  username: string;
  password: string;
}

/** A supervisor of the client's node (RFC 6749 section 4.3). Unknown, of another node, wrong and locked are one answer. */
export function passwordGrant(parts: PasswordGrantParts): Grant {
  const turns = new OneAtATime({ waiting: WAITING, refusal: serviceUnavailable });
  return {
    grantType: 'password',
    async handle(request, client) {
      if (request.grant_type !== 'password') return undefined;
      const { username, password } = request;
      const attempt = { nodeId: client.nodeId, username, password };
      // Each guess is counted before the next of the same name is judged, or many at once would pass the lock.
      const key = `${client.nodeId} ${lockName(username)}`;
      const supervisor = await turns.run(key, () => authenticate(parts, attempt));
      if (!supervisor) return undefined;
      const { supervisorId, nodeId, permissions } = supervisor;
      const { clientId } = client;
      const sessionId = uuidV7();
      const expiresAtMs = parts.issuer.loginEndsAtMs();
      const session = { sessionId, nodeId, supervisorId, clientId, expiresAtMs };
      if (!(await parts.sessions.open(session, supervisor))) return undefined;
      const login = { supervisorId, permissions, sessionId };
      return { response: parts.issuer.forLogin(login, client), isApi: false };
    },
  };
}

/** The supervisor whose login this is. Whoever is refused costs one Argon2 run and the same number of statements. */
async function authenticate(
  { supervisors, passwords, locks }: PasswordGrantParts,
  { nodeId, username, password }: Login,
): Promise<SupervisorRecord | undefined> {
  const supervisor = await supervisors.findByUsername(nodeId, username);
  // The database may find a name by another spelling than ours: its failures count under the one name it has.
  const name = supervisor?.username ?? username;
  const isLocked = await locks.isLocked(nodeId, name);
  const isCounted = !isLocked && username.length <= MAX_USERNAME_LENGTH;
  const matches = await passwords.verify(nodeId, password, supervisor?.passwordHash);
  if (supervisor?.active && matches && isCounted) {
    await locks.unlock(nodeId, name);
    return supervisor;
  }
  if (isCounted) await locks.recordFailure(nodeId, name);
  else await locks.isLocked(nodeId, name);
  return undefined;
}
