import type { EventBus } from '../events/bus/event-bus.ts';
import { OutboxRelay } from '../events/outbox/outbox.ts';
import { systemClock } from '../events/streams/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Database, Db } from '../platform/database/database.ts';
import { AccountPages, Accounts } from './accounts/accounts.service.ts';
import { Assets } from './assets/assets.service.ts';
import { GasFees, type GasSource } from './gas-fee/gas-fees.service.ts';
import { IdempotentResponses } from './idempotency/idempotent-responses.ts';
import { NetworkAssignments, NetworkPages } from './networks/networks.service.ts';
import { Reference, type ReferenceDropped } from './reference/reference.service.ts';
import { NotificationPublisher } from './transactions/transaction-messages.ts';
import { TransactionEventPages, TransactionPages } from './transactions/transaction-pages.service.ts';
import { Transactions } from './transactions/transactions.service.ts';
import { MigrationFiles } from './user-migrations/migration-files.service.ts';
import { MigrationJobs } from './user-migrations/migration-jobs.ts';
import { MigrationPages } from './user-migrations/migration-pages.service.ts';
import { ProgressFeeds } from './user-migrations/progress-feeds.ts';
import { UserMigrations } from './user-migrations/user-migrations.service.ts';
import { UserErasure } from './users/user-erasure.service.ts';
import { UserPages } from './users/users.service.ts';
import { WalletRulePreviews } from './wallet-rules/preview.service.ts';
import { WalletRulePages, WalletRules } from './wallet-rules/wallet-rules.service.ts';
import { WalletPages } from './wallets/wallets.service.ts';

/** What the services stand on that need no store but the database. */
interface StoredDependencies {
  db: Db;
  log: Log;
  /** Returns milliseconds since 1970. */
  nowMs(): number;
  /** Whether the GraphQL mutation may register transactions. */
  registersByMutation: boolean;
  /** Wakes the subscribers of a tenant: its event log goes up to `seq` now. */
  wake(nodeId: string, seq: bigint): void;
  /** Resolves once the audit records of requests that have ended are in the database. */
  auditSettled(): Promise<void>;
  /** Events may wait in the outbox. */
  notify(): void;
  /** Told of a row of reference data that had waited for its parent and cannot be applied. */
  dropped: ReferenceDropped;
  /** Told after each batch how many rows of its file have an outcome. */
  onBatch?: ((rows: number) => void) | undefined;
}

/** Builds the services that need no store but the database: all of them for a process that serves nobody. */
export function buildStored({ notify, dropped, onBatch, ...dependencies }: StoredDependencies) {
  const { db, log, nowMs, registersByMutation, wake, auditSettled } = dependencies;
  const userMigrations = new UserMigrations({ db, log, nowMs, notify });
  const migrationJobs = new MigrationJobs({ db, log, nowMs, userMigrations, onBatch });
  const migrationFiles = new MigrationFiles({ db, nowMs, notify: () => migrationJobs.notify() });
  const walletRulePages = new WalletRulePages(db);
  return {
    accounts: new Accounts(db),
    accountPages: new AccountPages(db),
    assets: new Assets(db),
    walletPages: new WalletPages(db),
    walletRules: new WalletRules({ db, nowMs }),
    walletRulePages,
    walletRulePreviews: new WalletRulePreviews({ pages: walletRulePages, nowMs }),
    networkPages: new NetworkPages(db),
    networkAssignments: new NetworkAssignments({ db, nowMs }),
    transactions: new Transactions({
      db,
      registersByMutation,
      wake,
      conflicted: (id) => log.warn({ transaction_id: id }, 'a transaction was told to be done and to have failed'),
    }),
    transactionPages: new TransactionPages(db),
    transactionEventPages: new TransactionEventPages(db),
    userPages: new UserPages(db),
    userErasure: new UserErasure({ db, nowMs, auditSettled }),
    userMigrations,
    migrationFiles,
    migrationJobs,
    migrationPages: new MigrationPages(db),
    migrationProgress: new ProgressFeeds({
      progress: (nodeId, id) => migrationFiles.progress(nodeId, id),
      clock: { ...systemClock, nowMs },
      onError: (error) => log.error({ err: error }, 'how far a migration is cannot be read'),
    }),
    reference: new Reference({ db, nowMs, dropped }),
    idempotentResponses: new IdempotentResponses({ db, nowMs }),
  };
}

/** What the services of the domain stand on. */
interface DomainDependencies extends Omit<StoredDependencies, 'db' | 'notify' | 'dropped' | 'onBatch'> {
  database: Pick<Database, 'db' | 'isEmbedded'>;
  bus: EventBus;
  /** Who says what gas costs, by the id of the network. */
  gasSources: ReadonlyMap<string, GasSource>;
}

/** Every service of the domain. A face takes the ones that it uses. */
export type Domain = ReturnType<typeof buildDomain>;

/** Builds every service of the domain, once in a process. None runs by itself until `outbox` and `migrationJobs` are started. */
export function buildDomain({ database: { db, isEmbedded }, bus, gasSources, ...dependencies }: DomainDependencies) {
  const { log, nowMs } = dependencies;
  const outbox = new OutboxRelay({ db, bus, isAlone: isEmbedded, log });
  return {
    ...buildStored({
      ...dependencies,
      db,
      notify: () => outbox.notify(),
      dropped: (kind, id, reason) =>
        log.warn({ kind, id, reason }, 'a row of reference data had waited for its parent and cannot be applied'),
    }),
    notifications: new NotificationPublisher(bus),
    gasFees: new GasFees({ sources: gasSources, nowMs, log }),
    outbox,
  };
}
