import { isUuid } from '../../lib/input.ts';
import { KeyedMutex } from '../../lib/keyed-mutex.ts';
import type { Db } from '../../platform/database/database.ts';
import { outsideRequest, withoutDeadline } from '../../platform/database/tenant-db.ts';
import { notFoundRefusal, serviceUnavailable } from '../../platform/errors.ts';
import { type PersonalData, tellingIdentifiers, tracesOf } from './erased-text.rules.ts';
import { RecordedTexts } from './recorded-texts.ts';
import { UserStore } from './user-store.ts';
import type { UserRow } from './users.service.ts';

interface UserErasureParts {
  db: Db;
  nowMs(): number;
  /** Resolves once the audit records of requests that have ended are in their table, as far as can be known. */
  auditSettled(): Promise<void>;
}

/** Erasures of one node. */
const MAX_WAITING = 64;

/** Records of requests that were under way may come this late. */
const LATE_MS = 10 * 60_000;

/** Blanks what is kept of a user's person; the user, its id and that it is verified stay. */
export class UserErasure {
  readonly #parts: UserErasureParts;
  /** Two at once would write back what the other has blanked in a record, and hold a connection each as they wait. */
  readonly #mutex = new KeyedMutex({ maxWaiting: MAX_WAITING, refusal: serviceUnavailable });
  readonly #recorded: RecordedTexts;
  readonly #store: UserStore;

  constructor(parts: UserErasureParts) {
    this.#parts = parts;
    this.#recorded = new RecordedTexts(parts.db);
    this.#store = new UserStore(parts.db);
  }

  /**
   * Blanks names, identifiers and the wallet's address of a user: in the user, in rows of migrations, in answers kept
   * under a key, and in every column of audit records of the node, or of none, one of which shows the id, the email, the
   * external id or the wallet. Once more changes nothing. It reads all that is kept of the node, however long that takes.
   * Those of one node go one after another.
   * @throws RefusalError `not_found` for an id that is not a user's of the node.
   * @throws AppError 503 where too many wait.
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
    // Audit records first: an erasure that is cut short still knows next time what to look for.
    await this.#recorded.eraseAudited(nodeId, person);
    const erased = await db.transaction(async () => {
      await this.#store.lock(nodeId);
      await this.#recorded.eraseAnswers(nodeId, traces, data);
      await this.#eraseRows(nodeId, userId, data);
      return this.#eraseUser(nodeId, userId);
    });
    await auditSettled();
    // From here on a refusal would be for good: the user no longer shows what to look for.
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

  /** Rows that created the user, and rows that were skipped since the user was there. */
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
