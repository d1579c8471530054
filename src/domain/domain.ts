import type { EventBus } from '../events/bus/event-bus.ts';
import { OutboxRelay } from '../events/outbox/outbox.ts';
import { systemClock } from '../events/streams/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Database } from '../platform/database/database.ts';
import { AccountPages, Accounts } from './accounts/accounts.service.ts';
import { Assets } from './assets/assets.service.ts';
import { GasFees } from './gas-fee/gas-fees.service.ts';
import { RpcProvider } from './gas-fee/rpc-provider.ts';
import { IdempotentResponses } from './idempotency/idempotent-responses.ts';
import { NetworkAssignments, NetworkPages } from './networks/networks.service.ts';
import { Reference } from './reference/reference.service.ts';
import { NotificationPublisher } from './transactions/notification-publisher.ts';
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

/** What the services of the domain stand on. */
interface DomainDependencies {
  database: Pick<Database, 'db' | 'isEmbedded'>;
  bus: EventBus;
  log: Log;
  /** Returns milliseconds since 1970. */
  nowMs(): number;
  /** The URL of a JSON-RPC provider by the id of the network whose gas it prices. */
  gasNodes: ReadonlyMap<string, string>;
  /** Whether the GraphQL mutation may register transactions. */
  registersByMutation: boolean;
  /** Wakes the subscribers of a tenant: its event log goes up to `seq` now. */
  wake(nodeId: string, seq: bigint): void;
  /** Resolves once the audit records of requests that have ended are in the database. */
  auditSettled(): Promise<void>;
}

/** Every service of the domain. A face takes the ones that it uses. */
export type Domain = ReturnType<typeof buildDomain>;

/**
 * Builds every service of the domain, once in a process. Nothing runs by itself until `outbox` and `migrationJobs` are
 * started; `stack` takes the connections to close.
 */
export function buildDomain(
  { database, bus, log, nowMs, gasNodes, registersByMutation, wake, auditSettled }: DomainDependencies,
  stack: AsyncDisposableStack,
) {
  const { db, isEmbedded } = database;
  const outbox = new OutboxRelay({ db, bus, isAlone: isEmbedded, log });
  const userMigrations = new UserMigrations({ db, log, nowMs, notify: () => outbox.notify() });
  const migrationJobs = new MigrationJobs({ db, log, nowMs, userMigrations });
  const migrationFiles = new MigrationFiles({ db, nowMs, notify: () => migrationJobs.notify() });
  const gasSources = new Map(Array.from(gasNodes, ([networkId, url]) => [networkId, new RpcProvider(url)]));
  stack.defer(async () => {
    await Promise.all(gasSources.values().map((source) => source.close()));
  });
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
    notifications: new NotificationPublisher(bus),
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
    reference: new Reference({
      db,
      nowMs,
      dropped: (kind, id, reason) =>
        log.warn({ kind, id, reason }, 'a row of reference data had waited for its parent and cannot be applied'),
    }),
    gasFees: new GasFees({ sources: gasSources, nowMs, log }),
    idempotentResponses: new IdempotentResponses({ db, nowMs }),
    outbox,
  };
}
