import type { AuditErasure } from '../../audit/erasure.ts';
import { noteUsers } from '../../audit/noted-users.ts';
import { isUuid } from '../../lib/input.ts';
import { KeyedMutex } from '../../lib/keyed-mutex.ts';
import type { Db } from '../../platform/database/database.ts';
import { outsideRequest, withoutDeadline } from '../../platform/database/tenant-db.ts';
import { notFound, serviceUnavailable } from '../../platform/errors.ts';
import type { IdempotentResponses } from '../idempotency/idempotent-responses.ts';
import { UserStore } from './user-store.ts';
import type { UserRow } from './users.service.ts';

interface UserErasureDependencies {
  db: Db;
  auditErasure: AuditErasure;
  idempotentResponses: Pick<IdempotentResponses, 'erase'>;
  nowMs(): number;
  /** Resolves once the audit records of all finished requests are in their table, as far as this process can know. */
  auditSettled(): Promise<void>;
}

/** What an erasure has done: when, and the numbers of audit records and stored responses that it has erased. */
export interface ErasureReceipt {
  /** PostgreSQL's text in UTC. */
  erasedAt: string;
  records: number;
  responses: number;
}

/** A user whose personal data is blank, with the receipt. */
export interface ErasedUser extends UserRow {
  erasure: ErasureReceipt;
}

/** The greatest number of erasures of one tenant that wait for the mutex. */
const MAX_WAITING = 64;

/** Erases the personal data of users. The user's row, its id and its KYC status stay. */
export class UserErasure {
  readonly #deps: UserErasureDependencies;
  /** A mutex for each tenant, so that waiting erasures hold no connection. */
  readonly #mutex = new KeyedMutex({ maxWaiting: MAX_WAITING, refusal: serviceUnavailable });
  readonly #store: UserStore;

  constructor(deps: UserErasureDependencies) {
    this.#deps = deps;
    this.#store = new UserStore(deps.db);
  }

  /**
   * Erases a user by provenance: the user's row and rows of user migrations, and the kept responses and audit records that
   * have noted the user. Housekeeping repeats it for audit records that arrive later.
   * @throws Refusal `not_found` when the tenant has no user with this id.
   * @throws Refusal `service_unavailable` when too many are waiting.
   */
  erase(nodeId: string, id: string): Promise<ErasedUser> {
    return this.#mutex.run(nodeId, () => withoutDeadline(() => this.#erase(nodeId, id)));
  }

  async #erase(nodeId: string, id: string): Promise<ErasedUser> {
    if (!isUuid(id)) throw notFound();
    const { db, nowMs, auditErasure, auditSettled, idempotentResponses } = this.#deps;
    const userId = id.toLowerCase();
    const { user, responses } = await db.transaction(async () => {
      await this.#store.lock(nodeId);
      await this.#store.eraseRows(nodeId, userId);
      const user = await this.#eraseUser(nodeId, userId, new Date(nowMs()).toISOString());
      return { user, responses: await idempotentResponses.erase(nodeId, userId) };
    });
    noteUsers([userId]);
    await auditErasure.seal(userId);
    let records = await auditErasure.erase(userId);
    await auditSettled();
    records += await outsideRequest(() => auditErasure.erase(userId));
    return { ...user, erasure: { erasedAt: user.erased_at ?? '', records, responses } };
  }

  async #eraseUser(nodeId: string, id: string, erased_at: string): Promise<UserRow> {
    const blank = { external_id: null, name: '', surname: '', email: '', address: '', identity_number: '' };
    const [user] = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('users')
        .set({ ...blank, kyc_token_tx_hash: null, erased_at })
        .where('id', '=', id)
        .returningAll(),
    );
    if (!user) throw notFound();
    return user;
  }
}
