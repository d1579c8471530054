import type { AuditErasure } from '../../audit/erasure.ts';
import { isUuid } from '../../lib/input.ts';
import { KeyedMutex } from '../../lib/keyed-mutex.ts';
import type { Db } from '../../platform/database/database.ts';
import { outsideRequest, withoutDeadline } from '../../platform/database/tenant-db.ts';
import { notFoundRefusal, serviceUnavailable } from '../../platform/errors.ts';
import { type PersonalData, tellingIdentifiers, tracesOf } from './erased-text.rules.ts';
import { RecordedTexts } from './recorded-texts.ts';
import { RuleTexts } from './rule-texts.ts';
import { UserStore } from './user-store.ts';
import type { UserRow } from './users.service.ts';

interface UserErasureParts {
  db: Db;
  auditErasure: AuditErasure;
  nowMs(): number;
  /** Resolves once the audit records of all finished requests are in their table, as far as this process can know. */
  auditSettled(): Promise<void>;
}

/** The greatest number of erasures of one tenant that wait for the mutex. */
const MAX_WAITING = 64;

/** The time, in ms, for which audit records of earlier requests may still arrive in the table. */
const LATE_MS = 10 * 60_000;

/** Erases the personal data of users. The user's row, its id and its KYC status stay. */
export class UserErasure {
  readonly #parts: UserErasureParts;
  /**
   * A mutex for each tenant, so that its erasures run one at a time: concurrent ones would write back what the other
   * has erased from a record, and each would hold a connection while it waits.
   */
  readonly #mutex = new KeyedMutex({ maxWaiting: MAX_WAITING, refusal: serviceUnavailable });
  readonly #recorded: RecordedTexts;
  readonly #rules: RuleTexts;
  readonly #store: UserStore;

  constructor(parts: UserErasureParts) {
    this.#parts = parts;
    this.#recorded = new RecordedTexts(parts.db, parts.auditErasure);
    this.#rules = new RuleTexts(parts);
    this.#store = new UserStore(parts.db);
  }

  /**
   * Erases the names, identifiers and wallet address of a user from the user's row, the rows of user migrations, the
   * idempotent responses, and those audit records of the tenant or of no tenant, and those wallet rules and versions of
   * the tenant, that contain the user's id, email, external id or wallet address. Repeating it changes nothing. It reads
   * all stored records of the tenant, without a deadline; erasures of one tenant run one after another.
   * @throws RefusalError `not_found` when the tenant has no user with this id.
   * @throws AppError 503 when too many are waiting.
   */
  erase(nodeId: string, id: string): Promise<UserRow> {
    return this.#mutex.run(nodeId, () => withoutDeadline(() => this.#erase(nodeId, id)));
  }

  async #erase(nodeId: string, id: string): Promise<UserRow> {
    if (!isUuid(id)) throw notFoundRefusal();
    const { db, nowMs, auditSettled } = this.#parts;
    const startedAtMs = nowMs();
    const userId = id.toLowerCase();
    const [user] = await db.forNode(nodeId).run((k) => k.selectFrom('users').selectAll().where('id', '=', userId));
    if (!user) throw notFoundRefusal();
    const data = personalDataOf(user);
    const traces = [userId, ...tracesOf(data)];
    const person = { data, traces, identifiers: [userId, ...tellingIdentifiers(data)] };
    // These come first: after an interruption the user's row still has the values to search for.
    await this.#recorded.eraseAudited(nodeId, person);
    await this.#rules.erase(nodeId, person);
    const erased = await db.transaction(async () => {
      await this.#store.lock(nodeId);
      await this.#recorded.eraseAnswers(nodeId, traces, data);
      await this.#eraseRows(nodeId, userId, data);
      return this.#eraseUser(nodeId, userId);
    });
    await auditSettled();
    // From here on a repetition could not finish the work, since the user's row no longer has the values to search for.
    const since = new Date(startedAtMs - LATE_MS).toISOString();
    await outsideRequest(() => this.#recorded.eraseAudited(nodeId, person, since));
    return erased;
  }

  async #eraseUser(nodeId: string, id: string): Promise<UserRow> {
    const blank = { external_id: null, name: '', surname: '', email: '', address: '', identity_number: '' };
    const [user] = await this.#parts.db.forNode(nodeId).run((k) =>
      k
        .updateTable('users')
        .set({ ...blank, kyc_token_tx_hash: null })
        .where('id', '=', id)
        .returningAll(),
    );
    if (!user) throw notFoundRefusal();
    return user;
  }

  /** Erases the migration rows that created the user or were skipped as its duplicates. */
  async #eraseRows(nodeId: string, userId: string, { email, externalId }: PersonalData): Promise<void> {
    await this.#parts.db.forNode(nodeId).run((k) =>
      k
        .updateTable('migration_rows')
        .set({ email: null, external_id: null })
        .where((eb) =>
          eb.or([
            eb('user_id', '=', userId),
            ...(email === ''
              ? []
              : [eb(eb.fn<string>('lower', ['email']), '=', eb.fn<string>('lower', [eb.val(email)]))]),
            ...(externalId === '' ? [] : [eb('external_id', '=', externalId)]),
          ]),
        ),
    );
  }
}

function personalDataOf({ email, external_id, name, surname, address }: UserRow): PersonalData {
  return { email, externalId: external_id ?? '', name, surname, address };
}
