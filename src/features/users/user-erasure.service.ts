import { type Author, setAuthor } from '../../access/identity/authors.ts';
import type { AuditErasure } from '../../audit/erasure.ts';
import { noteUsers } from '../../audit/noted-users.ts';
import type { IdempotentResponses } from '../../idempotency/idempotent-responses.ts';
import { cutTo, isUuid } from '../../lib/input.ts';
import { KeyedMutex } from '../../lib/semaphore.ts';
import type { Db } from '../../platform/database/database.ts';
import { holdIdentifier } from '../../platform/database/identifier-column.ts';
import { notFound, serviceUnavailable } from '../../platform/errors.ts';
import { outsideRequest, requestSignal, withoutDeadline } from '../../platform/waiting-request.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import type { UserRow } from './users.rules.ts';
import { UserStore } from './users.service.ts';

interface UserErasureDependencies {
  db: Db;
  auditErasure: AuditErasure;
  idempotentResponses: Pick<IdempotentResponses, 'erase'>;
  nowMs(): number;
  /** Resolves once the audit records of all finished requests are in their table, as far as this process can know. */
  auditSettled(): Promise<void>;
}

/** The greatest number of erasures of one tenant that wait for the mutex. */
const MAX_WAITING = 64;

/** The personal data of a user, blank. */
const BLANK = {
  external_id: null,
  name: '',
  surname: '',
  email: '',
  email_clash: 0,
  address: '',
  identity_number: '',
  kyc_token_tx_hash: null,
};

/** Erases the personal data of users. The user's row, its id and its KYC status stay. */
export class UserErasure {
  readonly #deps: UserErasureDependencies;
  /** A mutex for each tenant, so that waiting erasures hold no connection. */
  readonly #mutex = new KeyedMutex({ maxWaiting: MAX_WAITING, refusal: serviceUnavailable, signalOf: requestSignal });
  readonly #store: UserStore;

  constructor(deps: UserErasureDependencies) {
    this.#deps = deps;
    this.#store = new UserStore(deps.db);
  }

  /**
   * Erases a user by provenance: the user's row and rows of user migrations, and the kept responses and audit records that
   * have noted the user. Housekeeping repeats it for audit records that arrive later. Returns the row, which keeps the
   * numbers of all erasures of the user, and the `sub` of the token; null for the command line.
   * @throws Refusal `not_found` when the tenant has no user with this id.
   * @throws Refusal `service_unavailable` when too many are waiting.
   */
  erase(nodeId: string, id: string, by: Author | null): Promise<UserRow> {
    return this.#mutex.run(nodeId, () => withoutDeadline(() => this.#erase(nodeId, id, by)));
  }

  async #erase(nodeId: string, id: string, by: Author | null): Promise<UserRow> {
    if (!isUuid(id)) throw notFound();
    const { db, nowMs, auditErasure, auditSettled, idempotentResponses } = this.#deps;
    const userId = id.toLowerCase();
    await db.transaction(async () => {
      await this.#store.lock(nodeId);
      if (by) await setAuthor(db, by);
      const [before] = await db
        .forNode(nodeId)
        .run((k) => k.selectFrom('users').select('email').where('id', '=', userId));
      const erased_migrations = await this.#store.eraseRows(nodeId, userId);
      const responses = await idempotentResponses.erase(nodeId, userId);
      await this.#count(nodeId, userId, 'erased_responses', responses, {
        ...BLANK,
        erased_at: new Date(nowMs()).toISOString(),
        erased_migrations,
        erased_by: by && cutTo(by.subject, MAX_LENGTHS.users.erased_by),
      });
      await holdIdentifier(db, ['users', 'email'], nodeId, before?.email ?? '');
    });
    noteUsers([userId]);
    const seal = await auditErasure.seal(userId);
    let records = await auditErasure.erase(userId);
    await auditSettled();
    records += await outsideRequest(() => auditErasure.erase(userId));
    return this.#count(nodeId, userId, 'erased_records', records, { erased_seal: JSON.stringify(seal) });
  }

  /** Adds to a number of the receipt and sets other columns. The database adds: other processes may erase the same user. */
  async #count(
    nodeId: string,
    id: string,
    column: 'erased_records' | 'erased_responses',
    count: number,
    set: Partial<Omit<UserRow, 'node_id'>> = {},
  ): Promise<UserRow> {
    const [user] = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('users')
        .set(set)
        .set(column, (eb) => eb(eb.fn.coalesce(column, eb.lit(0)), '+', count))
        .where('id', '=', id)
        .returningAll(),
    );
    if (!user) throw notFound();
    return user;
  }
}
