import { createHmac } from 'node:crypto';
import { identifierKey } from '../../lib/identifier-key.ts';
import { isLonger } from '../../lib/input.ts';
import { KeyedMutex } from '../../lib/keyed-mutex.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
import { requestSignal } from '../../platform/waiting-request.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import type { LoginLocks, LoginOrigin } from '../credentials/login-locks.ts';
import type { Passwords } from '../credentials/passwords.ts';
import type { SupervisorRecord, Supervisors } from './supervisors.service.ts';

/** The logins that wait: of one username for the mutex, and of the console for hashing. */
const WAITING = { maxWaiting: 64, refusal: serviceUnavailable, signalOf: requestSignal };
/** The maximum number of console logins in the hashing queue, so that most of it is left for the token endpoint. */
const MAX_CONSOLE = 8;

/**
 * Returns a function that gives the text for a name that no supervisor or client has, in logs and audit records: a hash
 * with a key derived from `SECRET_PEPPER`, because people type passwords into the wrong field. Names that are looked up
 * as one have the same hash.
 */
export function strangers(pepper: string): (name: string) => string {
  const key = createHmac('sha256', pepper).update('portcullis unknown names').digest();
  return (name) => `unknown:${createHmac('sha256', key).update(identifierKey(name)).digest('hex').slice(0, 32)}`;
}

/**
 * Who logs in or, with a fault, whom the login named: the id of a supervisor, or a hash of another name. The caller is told
 * the same for all faults.
 */
type Login =
  | { supervisor: SupervisorRecord; fault: undefined }
  | { subject: string; fault: 'unknown_supervisor' | 'supervisor_disabled' | 'locked' | 'wrong_password' };

interface PasswordCheckDependencies {
  supervisors: Pick<Supervisors, 'findByUsername'>;
  passwords: Pick<Passwords, 'verify'>;
  locks: Pick<LoginLocks, 'isLocked' | 'recordFailure' | 'unlock'>;
  /** Returns a hash of a name that no supervisor has. */
  strangerOf(name: string): string;
}

/** Checks passwords of supervisors, and locks usernames after failures. */
export class PasswordCheck {
  readonly #deps: PasswordCheckDependencies;
  readonly #guesses = new KeyedMutex({ ...WAITING });
  /** Console logins need no client secret, so anyone can send them: they must not fill the hashing queue. */
  readonly #console = new Semaphore({ permits: MAX_CONSOLE, ...WAITING });

  constructor(deps: PasswordCheckDependencies) {
    this.#deps = deps;
  }

  /**
   * Returns the active supervisor of a tenant if the password is right and the username is not locked; else a fault.
   * @throws Refusal `service_unavailable` when too many logins of the username, or of the console, wait.
   */
  check(nodeId: string, username: string, password: string, origin: LoginOrigin): Promise<Login> {
    // Each failure is counted before the next login of the same username is checked; otherwise concurrent logins
    // would evade the lockout.
    const key = `${nodeId} ${origin === null} ${identifierKey(username)}`;
    return this.#guesses.run(key, () => this.#authenticate(nodeId, username, password, origin));
  }

  /** Every failure costs one Argon2 computation and the same number of statements. */
  async #authenticate(nodeId: string, username: string, password: string, origin: LoginOrigin): Promise<Login> {
    const { supervisors, passwords, locks, strangerOf } = this.#deps;
    const supervisor = await supervisors.findByUsername(nodeId, username);
    const isLocked = await locks.isLocked(nodeId, username, origin);
    const isCounted = !isLocked && !isLonger(identifierKey(username), MAX_LENGTHS.supervisors.username);
    const verify = () => passwords.verify(nodeId, password, supervisor?.passwordHash);
    const matches = await (origin === null ? verify() : this.#console.run(origin, verify));
    if (supervisor?.active && matches && isCounted) {
      // The failures may have been guesses at a password of another supervisor with this key.
      if (!supervisor.clashes) await locks.unlock(nodeId, username, origin);
      return { supervisor, fault: undefined };
    }
    if (isCounted) await locks.recordFailure(nodeId, username, origin);
    else await locks.isLocked(nodeId, username, origin);
    const subject = supervisor?.supervisorId ?? strangerOf(username);
    if (isLocked) return { subject, fault: 'locked' };
    if (!supervisor) return { subject, fault: 'unknown_supervisor' };
    return { subject, fault: supervisor.active ? 'wrong_password' : 'supervisor_disabled' };
  }
}
