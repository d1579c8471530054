import type { AuditErasure } from '../audit/erasure.ts';
import type { EventBus } from '../events/bus/event-bus.ts';
import { OutboxRelay } from '../events/outbox/outbox.ts';
import { AccountPages, Accounts } from '../features/accounts/accounts.service.ts';
import { activityLists } from '../features/activity/activity.service.ts';
import { Assets } from '../features/assets/assets.service.ts';
import { GasFees, type GasSource } from '../features/gas-fee/gas-fee.service.ts';
import { Networks } from '../features/networks/networks.service.ts';
import { Reference, type ReferenceDropped } from '../features/reference/reference.service.ts';
import { NotificationPublisher } from '../features/transactions/transaction-messages.service.ts';
import { TransactionPages } from '../features/transactions/transaction-pages.service.ts';
import { Transactions } from '../features/transactions/transactions.service.ts';
import { MigrationFiles, MigrationPages } from '../features/user-migrations/migration-files.service.ts';
import { MigrationJobs } from '../features/user-migrations/migration-jobs.service.ts';
import { ProgressFeeds } from '../features/user-migrations/progress-feeds.service.ts';
import { UserMigrations } from '../features/user-migrations/user-migrations.service.ts';
import { UserErasure, UserPages } from '../features/users/users.service.ts';
import { WalletRulePreviews } from '../features/wallet-rules/preview.service.ts';
import { WalletRulePages, WalletRules } from '../features/wallet-rules/wallet-rules.service.ts';
import { WalletPages } from '../features/wallets/wallets.service.ts';
import { IdempotentResponses } from '../idempotency/idempotent-responses.ts';
import type { Log } from '../lib/log.ts';
import type { Db } from '../platform/database/database.ts';
import type { Database } from '../platform/database/open-database.ts';

/** The dependencies of the services that need no store but the database. */
interface StoredDependencies {
  db: Db;
  log: Log;
  /** Returns the current time in milliseconds since 1970. */
  nowMs(): number;
  /** Whether a GraphQL mutation may register transactions. */
  registersByMutation: boolean;
  /** Notifies the subscribers of a tenant that its event log now has events up to sequence number `seq`. */
  wake(nodeId: string, seq: bigint): void;
  auditErasure: AuditErasure;
  /** Resolves once the audit records of all finished requests are in the database. */
  auditSettled(): Promise<void>;
  /** Called when new events may be in the outbox. */
  notify(): void;
  /** Called when a parked row of reference data turns out to be impossible to apply. */
  dropped: ReferenceDropped;
  /** Called after each row batch of a user migration file with the number of rows that now have an outcome. */
  onBatch?: ((rows: number) => void) | undefined;
}

/** Builds the services that need no store but the database. For a process that serves no requests these are all. */
export function buildStored({ notify, dropped, onBatch, ...dependencies }: StoredDependencies) {
  const { db, log, nowMs, registersByMutation, wake, auditErasure, auditSettled } = dependencies;
  const userMigrations = new UserMigrations({ db, log, nowMs, notify });
  const migrationJobs = new MigrationJobs({ db, log, nowMs, userMigrations, onBatch });
  const migrationFiles = new MigrationFiles({ db, nowMs, notify: () => migrationJobs.notify() });
  const walletPages = new WalletPages(db);
  const walletRulePages = new WalletRulePages(db);
  const networks = new Networks({ db, nowMs });
  const idempotentResponses = new IdempotentResponses({ db, nowMs });
  return {
    accounts: new Accounts(db),
    accountPages: new AccountPages(db),
    activity: activityLists(db),
    assets: new Assets(db),
    walletPages,
    walletRules: new WalletRules({ db, nowMs }),
    walletRulePages,
    walletRulePreviews: new WalletRulePreviews({ pages: walletRulePages, wallets: walletPages, networks, nowMs }),
    networks,
    transactions: new Transactions({
      db,
      registersByMutation,
      wake,
      conflicted: (id) =>
        log.warn({ transaction_id: id }, 'conflicting notifications: transaction both completed and failed'),
      moved: (id) => log.warn({ transaction_id: id }, 'transaction moved to the tenant that its owner names'),
    }),
    transactionPages: new TransactionPages(db),
    userPages: new UserPages(db),
    userErasure: new UserErasure({ db, nowMs, auditErasure, auditSettled, idempotentResponses }),
    userMigrations,
    migrationFiles,
    migrationJobs,
    migrationPages: new MigrationPages(db),
    migrationProgress: new ProgressFeeds({
      progress: (nodeId, id) => migrationFiles.progress(nodeId, id),
      onError: (error) => log.error({ err: error }, 'cannot read migration progress'),
    }),
    reference: new Reference({ db, nowMs, dropped }),
    idempotentResponses,
  };
}

/**
 * Builds all services of features; called once in a process. Nothing runs in the background until `outbox` and
 * `migrationJobs` are started.
 */
export function buildFeatures({
  database: { db, isEmbedded },
  bus,
  gasSources,
  ...dependencies
}: Omit<StoredDependencies, 'db' | 'notify' | 'dropped' | 'onBatch'> & {
  database: Pick<Database, 'db' | 'isEmbedded'>;
  bus: EventBus;
  /** The sources of gas prices, by network id. */
  gasSources: ReadonlyMap<string, GasSource>;
}) {
  const { log, nowMs } = dependencies;
  const outbox = new OutboxRelay({ db, bus, isAlone: isEmbedded, log });
  return {
    ...buildStored({
      ...dependencies,
      db,
      notify: () => outbox.notify(),
      dropped: (kind, id, reason) =>
        log.warn({ kind, id, reason }, 'could not apply a row of reference data that waited for its parent'),
    }),
    notifications: new NotificationPublisher(bus),
    gasFees: new GasFees({ sources: gasSources, nowMs, log }),
    outbox,
  };
}
