import type { Db } from '../db.ts';
import { sqlState } from '../lib/sql-state.ts';
import { settleAssets } from '../transactions/asset-effects.ts';
import type { ReferenceChange } from './reference-change.ts';
import type { ReferenceKind } from './reference-kinds.ts';
import { ReferenceStore } from './reference-store.ts';
import { type Applied, NotAloneError, ReferenceWork } from './reference-work.ts';

const UNIQUE_VIOLATION = '23505';

interface ReferenceParts {
  db: Db;
  nowMs: () => number;
  /** Told of a row that had waited for its parent and that the parent has shown to be impossible. */
  dropped?(kind: ReferenceKind, id: string, reason: string): void;
}

/** Reference data of the platform: nodes, chains, networks, currencies, accounts, wallets and assets. */
export class Reference {
  readonly #db: Db;
  readonly #nowMs: () => number;
  readonly #dropped: NonNullable<ReferenceParts['dropped']>;
  readonly #store: ReferenceStore;

  constructor({ db, nowMs, dropped = () => undefined }: ReferenceParts) {
    this.#db = db;
    this.#nowMs = nowMs;
    this.#dropped = dropped;
    this.#store = new ReferenceStore(db);
  }

  /**
   * Applies changes of any kinds in one transaction, set-wise (decisions: reference data). The higher version wins, a
   * tombstone deletes; a row whose parent is not there yet waits for it. In any order and however often repeated they
   * end in the same state, tombstones apart, which delete the versions that are known when they come.
   */
  async apply(changes: readonly ReferenceChange[]): Promise<Applied> {
    const isAlone = changes.some(({ row }) => row === undefined);
    try {
      return await this.#attempt(changes, isAlone);
    } catch (error) {
      // Two that insert one id at once can meet in another of its unique indexes than the one they agree on.
      if (!(error instanceof NotAloneError) && (isAlone || sqlState(error) !== UNIQUE_VIOLATION)) throw error;
      return this.#attempt(changes, true);
    }
  }

  /** How many rows wait for a parent. */
  async waiting(): Promise<number> {
    return this.#store.countWaiting();
  }

  #attempt(changes: readonly ReferenceChange[], isAlone: boolean): Promise<Applied> {
    return this.#db.transaction(async () => {
      await this.#store.lock(isAlone);
      const work = new ReferenceWork(this.#store, { isAlone, nowMs: this.#nowMs, dropped: this.#dropped });
      const applied = await work.run(changes);
      if (work.assetIds.length > 0) await settleAssets(this.#db, await this.#store.withTransactions(work.assetIds));
      return applied;
    });
  }
}
