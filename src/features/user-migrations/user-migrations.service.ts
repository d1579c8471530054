import type { Caller } from '../../access/identity/callers.ts';
import { KeyedMutex } from '../../lib/keyed-mutex.ts';
import type { Log } from '../../lib/log.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Db } from '../../platform/database/database.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
import { requestSignal } from '../../platform/waiting-request.ts';
import type { UserRow } from '../users/users.rules.ts';
import { present } from '../users/users.rules.ts';
import type { MigrateUserInput } from './migration.input.ts';
import type { SkipReason } from './migration-outcome.rules.ts';
import type { MigrationTableRow } from './migrations.store.ts';
import { MigrationStore } from './migrations.store.ts';
import {
  type AppliedRow,
  countsOf,
  outcomeRowOf,
  RowApplication,
  type RowsToApply,
} from './row-application.service.ts';

/** The greatest number of user migrations of one tenant that wait for the mutex. Each may hold 500 rows. */
export const MAX_WAITING_MIGRATIONS = 32;

/** The caller of a user migration, in the request with this correlation id. */
export type MigrationCaller = Pick<Caller, 'nodeId' | 'subject' | 'correlationId'> &
  Partial<Pick<Caller, 'traceparent'>>;

/** A completed user migration with the outcomes of its rows. */
export interface AppliedMigration extends MigrationTableRow {
  rows: AppliedRow[];
}

/** The outcome of migrating a single user: created, or skipped for a reason. */
export type MigratedUser = { user: UserRow } | { skipped: SkipReason };

/**
 * Migrates users (docs/contract.md, 4.6 and 4.7). Duplicates are found by one query, outcomes are decided in
 * memory, and users, events and outcomes are written in one transaction.
 */
export class UserMigrations {
  readonly #deps;
  /**
   * A mutex for each tenant, so that its user migrations run one at a time. The database ensures the same across
   * processes; waiting here holds no connection.
   */
  readonly #mutex = new KeyedMutex({
    maxWaiting: MAX_WAITING_MIGRATIONS,
    refusal: serviceUnavailable,
    signalOf: requestSignal,
  });
  readonly #store: MigrationStore;
  readonly #application: RowApplication;

  constructor(deps: {
    db: Db;
    log: Log;
    nowMs(): number;
    /** Called when new events may be in the outbox. */
    notify(): void;
  }) {
    this.#deps = deps;
    this.#store = new MigrationStore(deps.db);
    this.#application = new RowApplication(deps.db, deps.log);
  }

  /**
   * Runs `work`, which migrates users in a transaction, while no other such work of the tenant runs in this process.
   * Inside a transaction it does not wait, since the caller that began the transaction has waited.
   * @throws Refusal `service_unavailable` when too many are waiting.
   */
  async exclusively<Result>(nodeId: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#deps.db.isInTransaction) return work();
    const result = await this.#mutex.run(nodeId, work);
    this.#deps.notify();
    return result;
  }

  /**
   * Migrates 1 to 500 users. A row that the database refuses is failed; the other rows are migrated. A dry run stores
   * the migration with the same outcomes, and no user.
   */
  migrateMany(caller: MigrationCaller, rows: readonly MigrateUserInput[], isDryRun = false): Promise<AppliedMigration> {
    return this.#migrate(caller, rows, { mayFail: true, isDryRun });
  }

  /**
   * Migrates one user.
   * @throws what the database throws; then nothing has been written.
   */
  async migrateOne(caller: MigrationCaller, input: MigrateUserInput): Promise<MigratedUser> {
    const [row] = (await this.#migrate(caller, [input], { mayFail: false, isDryRun: false })).rows;
    if (row?.user) return { user: row.user };
    if (row?.outcome.status !== 'skipped') throw new Error('one user is created or skipped');
    return { skipped: row.outcome.reason };
  }

  #migrate(
    caller: MigrationCaller,
    rows: readonly MigrateUserInput[],
    mode: Pick<RowsToApply, 'mayFail' | 'isDryRun'>,
  ): Promise<AppliedMigration> {
    const { db, nowMs } = this.#deps;
    const { nodeId, subject, correlationId, traceparent } = caller;
    return db.transaction(async () => {
      const atMs = nowMs();
      const applied = await this.#application.apply({ nodeId, correlationId, traceparent, rows, ...mode, atMs });
      const outcomes = applied.map((row, index) => outcomeRowOf(row, index + 1));
      const finished = {
        id: uuidV7(atMs),
        created_by: subject,
        dry_run: mode.isDryRun,
        total: rows.length,
        ...countsOf(outcomes),
      };
      const migration = await this.#store.record(nodeId, finished, atMs);
      await this.#store.recordRows(nodeId, migration.id, outcomes);
      return { ...migration, rows: applied };
    });
  }
}

/** Returns the result of a bulk migration as REST shows it (docs/contract.md, 2.9-01). */
export function bulkResultView({ total, success, skipped, failed, rows }: AppliedMigration) {
  const results = rows.map(({ input, outcome, user }) => ({
    ...(present(input.email) ? { email: input.email } : {}),
    ...(present(input.external_id) ? { external_id: input.external_id } : {}),
    ...(user ? { user_id: user.id } : {}),
    status: outcome.status,
    ...(outcome.status === 'created' ? {} : { reason: outcome.reason }),
  }));
  return { total, success, skipped, failed, results };
}
