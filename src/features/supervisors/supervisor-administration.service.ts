import {
  type AdministrativeChange,
  type Administrator,
  lastAdminRefusal,
  OPERATOR,
  refuseAdministration,
} from '../../access/administration/administration.ts';
import type { LoginLocks } from '../../access/credentials/login-locks.ts';
import type { Passwords } from '../../access/credentials/passwords.ts';
import type { Author } from '../../access/identity/authors.ts';
import type { Principal } from '../../access/identity/callers.ts';
import { permissionsOfRole } from '../../access/identity/permissions.rules.ts';
import type { AccessChanges } from '../../access/revocation/access-changes.ts';
import type { Sessions } from '../../access/revocation/sessions.ts';
import {
  type PasswordCheck,
  SUPERVISOR_COLUMNS,
  type SupervisorRow,
} from '../../access/supervisors/supervisors.service.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Db } from '../../platform/database/database.ts';
import { identifierTaken, renameIdentifier } from '../../platform/database/identifier-column.ts';
import { idOrNotFound, invalidInput, notFound, orNotFound, withParent } from '../../platform/errors.ts';
import type { SupervisorInput } from './supervisor.input.ts';

interface Change {
  nodeId: string;
  administrator: Administrator;
  id: string;
  change: AdministrativeChange;
  set: {
    status?: SupervisorRow['status'];
    password_hash?: string;
    role?: string;
    username?: string;
    username_clash?: 0;
    unlocked_at?: string;
  };
}

/**
 * Returns the id of the supervisor whose login issued the caller's token. Another issuer may name any subject.
 * @throws Refusal `not_found` when no login has issued it.
 */
function supervisorOf({ tokenClass, tokenUse, subject }: Principal): string {
  if (tokenClass !== 'user' || tokenUse !== 'login') throw notFound();
  return subject;
}

/**
 * Creates and changes the supervisors of a tenant. Each method throws a Refusal: `not_found` when the tenant has
 * no such supervisor, `forbidden` and `precondition_failed` by the rules of administration. Every change except unlocking
 * revokes the supervisor's sessions.
 */
export class SupervisorAdministration {
  readonly #deps;

  constructor(deps: {
    db: Db;
    changes: Pick<AccessChanges, 'commit'>;
    sessions: Pick<Sessions, 'end'>;
    passwords: Pick<Passwords, 'hash'>;
    passwordCheck: Pick<PasswordCheck, 'check'>;
    locks: Pick<LoginLocks, 'unlock'>;
    nowMs(): number;
  }) {
    this.#deps = deps;
  }

  /**
   * Creates an active supervisor.
   * @throws Refusal `duplicate` when the tenant has the username.
   * @throws Refusal `service_unavailable` when too many passwords are being hashed.
   */
  async create(nodeId: string, administrator: Administrator, input: SupervisorInput): Promise<SupervisorRow> {
    const { username, role } = input;
    await this.#refuse(nodeId, administrator, 'create', [role]);
    const { db, passwords, nowMs } = this.#deps;
    const password_hash = await passwords.hash(input.password, nodeId);
    const now = new Date(nowMs()).toISOString();
    const values = { id: uuidV7(nowMs()), username, password_hash, role, created_at: now, updated_at: now };
    const [row] = await withParent(() =>
      db.transaction(async () => {
        await this.#refuse(nodeId, administrator, 'create', [role]);
        return db.forNode(nodeId).run((k) =>
          k
            .insertInto('supervisors')
            .values(values)
            .onConflict((conflict) => conflict.doNothing())
            .returning(SUPERVISOR_COLUMNS),
        );
      }),
    );
    if (!row) throw identifierTaken('username');
    return row;
  }

  /**
   * Enables or disables a supervisor.
   * @throws Refusal `precondition_failed` when it would disable the last active admin.
   */
  setStatus(
    nodeId: string,
    administrator: Administrator,
    id: string,
    status: SupervisorRow['status'],
  ): Promise<SupervisorRow> {
    const change = status === 'active' ? 'enable' : 'disable';
    return this.#change({ nodeId, administrator, id, change, set: { status } });
  }

  /**
   * Changes the role of a supervisor.
   * @throws Refusal `precondition_failed` when the last active admin would lose the role.
   */
  setRole(nodeId: string, administrator: Administrator, id: string, role: string): Promise<SupervisorRow> {
    return this.#change({ nodeId, administrator, id, change: 'set_role', set: { role } });
  }

  /**
   * Gives a supervisor another username.
   * @throws Refusal `duplicate` when another supervisor of the tenant has it.
   */
  rename(nodeId: string, administrator: Administrator, id: string, username: string): Promise<SupervisorRow> {
    const renamed = { nodeId, id: id.toLowerCase(), text: username };
    return renameIdentifier(this.#deps.db, ['supervisors', 'username'], renamed, () =>
      this.#change({ nodeId, administrator, id, change: 'rename', set: { username, username_clash: 0 } }),
    );
  }

  /**
   * Sets a supervisor's password.
   * @throws Refusal `service_unavailable` when too many passwords are being hashed.
   */
  async setPassword(
    nodeId: string,
    administrator: Administrator,
    id: string,
    password: string,
  ): Promise<SupervisorRow> {
    // Checked before the hash is computed, because hashing takes too long for a transaction.
    const { role } = await this.#find(nodeId, id);
    await this.#refuse(nodeId, administrator, 'set_password', [role]);
    const password_hash = await this.#deps.passwords.hash(password, nodeId);
    return this.#change({ nodeId, administrator, id, change: 'set_password', set: { password_hash } });
  }

  /** Revokes all sessions of a supervisor. */
  revokeSessions(nodeId: string, administrator: Administrator, id: string): Promise<SupervisorRow> {
    return this.#change({ nodeId, administrator, id, change: 'revoke_sessions', set: {} });
  }

  /**
   * Changes the password of the supervisor who calls. Wrong current passwords are counted as failed logins of the
   * session.
   * @throws Refusal `invalid_input` when the current password is wrong, or there were too many wrong ones.
   */
  async changeOwnPassword(caller: Principal & Author, current: string, password: string): Promise<SupervisorRow> {
    const { nodeId, sessionId } = caller;
    const id = supervisorOf(caller);
    const { username } = await this.#find(nodeId, id);
    const login = await this.#deps.passwordCheck.check(nodeId, username, current, `session ${sessionId}`);
    if ('reason' in login) throw invalidInput('current', 'is wrong, or was wrong too often');
    return this.setPassword(nodeId, { ...OPERATOR, author: caller }, id, password);
  }

  /** Revokes all sessions of the supervisor who calls. */
  async endOwnSessions(caller: Principal): Promise<SupervisorRow> {
    return this.revokeSessions(caller.nodeId, OPERATOR, supervisorOf(caller));
  }

  /** Ends a supervisor's lockout by deleting its failed logins. */
  unlock(nodeId: string, administrator: Administrator, id: string): Promise<SupervisorRow> {
    return this.#deps.db.transaction(async () => {
      const row = await this.#find(nodeId, id);
      await this.#refuse(nodeId, administrator, 'unlock', [row.role]);
      await this.#deps.locks.unlock(nodeId, row.username);
      return this.#update(nodeId, row.id, { unlocked_at: new Date(this.#deps.nowMs()).toISOString() });
    });
  }

  /** Runs a change while the supervisor's row is locked, and revokes its sessions. */
  async #change({ nodeId, administrator, id, change, set }: Change): Promise<SupervisorRow> {
    return this.#deps.changes.commit(async (recordRevocation) => {
      const locked = await this.#lock(nodeId, id);
      const before = orNotFound(locked.find((row) => row.id === id.toLowerCase()));
      await this.#refuse(nodeId, administrator, change, [before.role, set.role ?? before.role]);
      const refusal = lastAdminRefusal({ ...before, ...set }, locked);
      if (refusal) throw refusal;
      await this.#deps.sessions.end(nodeId, { supervisor_id: before.id }, recordRevocation);
      return change === 'revoke_sessions' ? before : this.#update(nodeId, before.id, set);
    });
  }

  /**
   * Locks and returns the supervisor and all active admins of the tenant, in the order of their ids. Two admins who
   * disable each other then run one after the other, instead of both seeing the other one active.
   */
  async #lock(nodeId: string, id: string): Promise<SupervisorRow[]> {
    const wantedId = idOrNotFound(id);
    return this.#deps.db.forNode(nodeId).run((k) =>
      k
        .selectFrom('supervisors')
        .select(SUPERVISOR_COLUMNS)
        .where((eb) =>
          eb.or([eb('id', '=', wantedId), eb.and([eb('role', '=', 'admin'), eb('status', '=', 'active')])]),
        )
        .orderBy('id')
        .forUpdate(),
    );
  }

  async #find(nodeId: string, id: string): Promise<SupervisorRow> {
    const wantedId = idOrNotFound(id);
    const [row] = await this.#deps.db
      .forNode(nodeId)
      .run((k) => k.selectFrom('supervisors').select(SUPERVISOR_COLUMNS).where('id', '=', wantedId));
    return orNotFound(row);
  }

  /**
   * Applies the rules of administration; `roles` are those that the supervisor has or will have.
   * @throws Refusal when they forbid the change.
   */
  #refuse(
    nodeId: string,
    administrator: Administrator,
    change: AdministrativeChange,
    roles: readonly string[],
  ): Promise<void> {
    return refuseAdministration(this.#deps.db, nodeId, administrator, change, {
      scopes: roles.flatMap(permissionsOfRole),
    });
  }

  async #update(nodeId: string, id: string, set: Change['set']): Promise<SupervisorRow> {
    const [row] = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('supervisors')
        .set({ ...set, updated_at: new Date(this.#deps.nowMs()).toISOString() })
        .where('id', '=', id)
        .returning(SUPERVISOR_COLUMNS),
    );
    return orNotFound(row);
  }
}
