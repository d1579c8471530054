import type { Db } from '../db.ts';
import { serviceUnavailable } from '../errors/app-error.ts';
import type { Log } from '../lib/log.ts';
import { OneAtATime } from '../lib/one-at-a-time.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import type { MigrateUserInput } from './migration.input.ts';
import { MigrationStore } from './migration-store.ts';
import { type AppliedRow, RowApplication } from './row-application.ts';
import { recordOf } from './row-records.rules.ts';

/** Migrations of one node. */
const WAITING = 1_000;

/** Who asks for a migration, and under which correlation id. */
export interface MigrationCaller {
  nodeId: string;
  /** The `sub` of the caller's token. */
  createdBy: string;
  correlationId: string;
  /** Where the trace of what they ask for goes on. */
  traceparent?: string | undefined;
}

/** A migration that is done. */
export interface AppliedMigration {
  id: string;
  total: number;
  success: number;
  skipped: number;
  failed: number;
  rows: AppliedRow[];
}

interface UserMigrationParts {
  db: Db;
  log: Log;
  nowMs(): number;
  /** Events may wait in the outbox. */
  notify(): void;
}

/**
 * Migrates users (specification sections 4.6 and 4.7): duplicates are looked up once, what becomes of each row is
 * decided in memory, and users, events and the record of it are written in one transaction.
 */
export class UserMigrations {
  readonly #parts: UserMigrationParts;
  /** The database sees to the same in all replicas; here it keeps those who wait from holding a connection each. */
  readonly #turns = new OneAtATime({ waiting: WAITING, refusal: serviceUnavailable });
  readonly #store: MigrationStore;
  readonly #application: RowApplication;

  constructor(parts: UserMigrationParts) {
    this.#parts = parts;
    this.#store = new MigrationStore(parts.db);
    this.#application = new RowApplication(parts.db, parts.log);
  }

  /**
   * Runs `work`, which migrates in a transaction of its own or joins one, when it is its turn among those of the node.
   * @throws AppError 503 where too many wait.
   */
  async inTurn<Result>(nodeId: string, work: () => Promise<Result>): Promise<Result> {
    const result = await this.#turns.run(nodeId, work);
    this.#parts.notify();
    return result;
  }

  /** Migrates 1 to 500 users; a row that the database refuses for a reason of its own is failed, and the others stand. */
  migrateMany(caller: MigrationCaller, rows: readonly MigrateUserInput[]): Promise<AppliedMigration> {
    return this.#migrate(caller, rows, true);
  }

  /**
   * Migrates one user, who is then created or skipped.
   * @throws what the database throws; nothing was written then.
   */
  migrateOne(caller: MigrationCaller, row: MigrateUserInput): Promise<AppliedMigration> {
    return this.#migrate(caller, [row], false);
  }

  #migrate(caller: MigrationCaller, rows: readonly MigrateUserInput[], mayFail: boolean): Promise<AppliedMigration> {
    const { db, nowMs } = this.#parts;
    const { nodeId, createdBy, correlationId, traceparent } = caller;
    return db.transaction(async () => {
      const atMs = nowMs();
      const applied = await this.#application.apply({ nodeId, correlationId, traceparent, rows, mayFail, atMs });
      const id = uuidV7(atMs);
      const counts = countsOf(applied);
      await this.#store.record(nodeId, { id, createdBy, ...counts, atMs });
      await this.#store.recordRows(
        nodeId,
        id,
        applied.map((row, index) => recordOf(row, index + 1)),
      );
      return { id, ...counts, rows: applied };
    });
  }
}

function countsOf(rows: readonly AppliedRow[]) {
  const count = (wanted: string) => rows.filter(({ outcome }) => outcome.status === wanted).length;
  return { total: rows.length, success: count('created'), skipped: count('skipped'), failed: count('failed') };
}
