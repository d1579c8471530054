import type { Db } from '../db.ts';
import { serviceUnavailable } from '../errors/app-error.ts';
import { notFoundRefusal } from '../errors/refusal.ts';
import { isUuid } from '../lib/input.ts';
import { OneAtATime } from '../lib/one-at-a-time.ts';
import { forNoRequest, unhurried } from '../lib/tenant-db.ts';
import { MigrationStore } from '../user-migrations/migration-store.ts';
import { type PersonalData, tellingIdentifiers, tracesOf } from './erased-text.rules.ts';
import { KeptTexts } from './kept-texts.ts';
import type { UserRow } from './user-pages.service.ts';

interface UserErasureParts {
  db: Db;
  nowMs(): number;
  /** Resolves once the audit records of requests that have ended are in their table, as far as can be known. */
  auditSettled(): Promise<void>;
}

/** Erasures of one node. */
const WAITING = 64;

/** Records of requests that were under way may come this late. */
const LATE_MS = 10 * 60_000;

/** Blanks what is kept of a user's person; the user, its id and that it is verified stay. */
export class UserErasure {
  readonly #parts: UserErasureParts;
  /** Two at once would write back what the other has blanked in a record, and hold a connection each as they wait. */
  readonly #turns = new OneAtATime({ waiting: WAITING, refusal: serviceUnavailable });
  readonly #kept: KeptTexts;
  readonly #store: MigrationStore;

  constructor(parts: UserErasureParts) {
    this.#parts = parts;
    this.#kept = new KeptTexts(parts.db);
    this.#store = new MigrationStore(parts.db);
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
    return this.#turns.run(nodeId, () => unhurried(() => this.#erase(nodeId, id)));
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
    await this.#kept.eraseAudited(nodeId, person);
    const erased = await db.transaction(async () => {
      await this.#store.lock(nodeId);
      await this.#kept.eraseAnswers(nodeId, traces, data);
      await this.#eraseRows(nodeId, userId, data);
      return this.#eraseUser(nodeId, userId);
    });
    await auditSettled();
    // From here on a refusal would be for good: the user no longer shows what to look for.
    const since = new Date(startedAtMs - LATE_MS).toISOString();
    await forNoRequest(() => this.#kept.eraseAudited(nodeId, person, since));
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
