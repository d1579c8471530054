import { createHmac } from 'node:crypto';
import type { Selectable } from 'kysely';
import { identifierKey } from '../../lib/identifier-key.ts';
import { isLonger } from '../../lib/input.ts';
import { KeyedMutex, Semaphore } from '../../lib/semaphore.ts';
import type { Db } from '../../platform/database/database.ts';
import { keysetList } from '../../platform/database/keyset-list.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
import { requestSignal } from '../../platform/held-memory.ts';
import type { Tables } from '../../tables/tables.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import type { LoginLocks, LoginOrigin } from '../credentials/login-locks.ts';
import type { Passwords } from '../credentials/passwords.ts';
import { permissionsOfRole } from '../identity/permissions.rules.ts';

/** A supervisor as used by the token endpoint. */
export type SupervisorRecord = ReturnType<typeof toRecord>;

/** Reads the supervisors of a tenant. */
export class Supervisors {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Returns the supervisor whose username has the same key, and whether others have it, too: of several, which earlier
   * releases allowed, the one with exactly this username. Undefined when the tenant has none.
   */
  async findByUsername(
    nodeId: string,
    username: string,
  ): Promise<(SupervisorRecord & { clashes: boolean }) | undefined> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('supervisors')
        .selectAll()
        .where((eb) => eb(eb.fn<string>('identifier_key', ['username']), '=', identifierKey(username))),
    );
    const clashes = rows.length > 1;
    const row = clashes ? rows.find((candidate) => candidate.username === username) : rows[0];
    return row && { ...toRecord(row), clashes };
  }

  /** Returns the supervisor with this id; undefined when the tenant has none. */
  async find(nodeId: string, supervisorId: string): Promise<SupervisorRecord | undefined> {
    const [row] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('supervisors').selectAll().where('id', '=', supervisorId));
    return row && toRecord(row);
  }
}

function toRecord(row: Selectable<Tables['supervisors']>) {
  return {
    supervisorId: row.id,
    nodeId: row.node_id,
    username: row.username,
    passwordHash: row.password_hash,
    role: row.role,
    permissions: permissionsOfRole(row.role),
    active: row.status === 'active',
  };
}

/** The columns of a supervisor that may be shown: all but the hash of the password. */
export const SUPERVISOR_COLUMNS = ['id', 'node_id', 'username', 'role', 'status', 'created_at', 'updated_at'] as const;

/** A row of `supervisors` without the hash of its password; times are PostgreSQL's text in UTC, to the microsecond. */
export type SupervisorRow = Pick<Selectable<Tables['supervisors']>, (typeof SUPERVISOR_COLUMNS)[number]>;

/** Reads the supervisors of a tenant by keyset, active or not, oldest first. */
export const SupervisorPages = keysetList({
  rows: (k) => k.selectFrom('supervisors').select(SUPERVISOR_COLUMNS),
  order: ['created_at', 'id'],
});

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

/** The reasons of refused logins whose records have the username that they named: of the login, or of its scope. */
export const NAMING_REASONS = [
  ...(['unknown_supervisor', 'supervisor_disabled', 'locked', 'wrong_password'] as const),
  'invalid_scope',
] as const;

/**
 * Who logs in or, with the reason of a refusal, whom the login named, the id of a supervisor or a hash of another name, and
 * until when the username is locked. The caller is told the same for all reasons.
 */
type Login =
  | { supervisor: SupervisorRecord }
  | {
      reason: Exclude<(typeof NAMING_REASONS)[number], 'invalid_scope'>;
      subject: string;
      lockedUntilMs: number | undefined;
    };

/** Checks passwords of supervisors, and locks usernames after failures. */
export class PasswordCheck {
  readonly #deps;
  readonly #guesses = new KeyedMutex({ ...WAITING });
  /** Console logins need no client secret, so anyone can send them: they must not fill the hashing queue. */
  readonly #console = new Semaphore({ permits: MAX_CONSOLE, ...WAITING });

  constructor(deps: {
    supervisors: Pick<Supervisors, 'findByUsername'>;
    passwords: Pick<Passwords, 'verify'>;
    locks: Pick<LoginLocks, 'lockOf' | 'recordFailure' | 'unlock'>;
    /** Returns a hash of a name that no supervisor has. */
    strangerOf(name: string): string;
    /** Returns the hashes that records may have of such a name: with the current key and the previous one. */
    strangersOf(name: string): readonly string[];
  }) {
    this.#deps = deps;
  }

  /**
   * Returns the active supervisor of a tenant if the password is right and the username is not locked; else the reason of a refusal.
   * @throws Refusal `service_unavailable` when too many logins of the username, or of the console, wait.
   */
  check(nodeId: string, username: string, password: string, origin: LoginOrigin): Promise<Login> {
    // Each failure is counted before the next login of the same username is checked; otherwise concurrent logins
    // would evade the lockout.
    const key = `${nodeId} ${origin === null} ${identifierKey(username)}`;
    return this.#guesses.run(key, () => this.#authenticate(nodeId, username, password, origin));
  }

  /**
   * Returns the subjects of the records of refused logins with a username: the id of the supervisor who has it, and the
   * hashes of a name that nobody had.
   */
  async subjectsOf(nodeId: string, username: string): Promise<string[]> {
    const supervisor = await this.#deps.supervisors.findByUsername(nodeId, username);
    return [...(supervisor ? [supervisor.supervisorId] : []), ...this.#deps.strangersOf(username)];
  }

  /** Every failure costs one Argon2 computation and the same number of statements. */
  async #authenticate(nodeId: string, username: string, password: string, origin: LoginOrigin): Promise<Login> {
    const { supervisors, passwords, locks, strangerOf } = this.#deps;
    const supervisor = await supervisors.findByUsername(nodeId, username);
    const lock = await locks.lockOf(nodeId, username, origin);
    const isLocked = lock.untilMs !== undefined;
    const isCounted = !isLocked && !isLonger(identifierKey(username), MAX_LENGTHS.supervisors.username);
    const verify = () => passwords.verify(nodeId, password, supervisor?.passwordHash);
    const matches = await (origin === null ? verify() : this.#console.run(origin, verify));
    if (supervisor?.active && matches && isCounted) {
      // The failures may have been guesses at a password of another supervisor with this key.
      if (!supervisor.clashes) await locks.unlock(nodeId, username, origin);
      return { supervisor };
    }
    const lockedUntilMs = isCounted
      ? lock.untilAfter(await locks.recordFailure(nodeId, username, origin))
      : (await locks.lockOf(nodeId, username, origin)).untilMs;
    const fault = supervisor?.active ? 'wrong_password' : supervisor ? 'supervisor_disabled' : 'unknown_supervisor';
    return {
      reason: isLocked ? 'locked' : fault,
      subject: supervisor?.supervisorId ?? strangerOf(username),
      lockedUntilMs,
    };
  }
}
