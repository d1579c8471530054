import { AccountPages } from '../accounts/account-pages.service.ts';
import { Assets } from '../assets/assets.service.ts';
import type { Db } from '../db.ts';
import type { GasFees } from '../gas-fee/gas-fees.service.ts';
import type { IdempotentAnswers } from '../idempotency/idempotent-answers.ts';
import { PageCursors } from '../lib/keyset.ts';
import { NetworkAssignments } from '../networks/network-assignments.service.ts';
import { NetworkPages } from '../networks/network-pages.service.ts';
import { TransactionEventPages } from '../transactions/transaction-event-pages.service.ts';
import { TransactionPages } from '../transactions/transaction-pages.service.ts';
import type { Transactions } from '../transactions/transactions.service.ts';
import type { MigrationFiles } from '../user-migrations/migration-files.service.ts';
import { MigrationPages } from '../user-migrations/migration-pages.service.ts';
import type { UserMigrations } from '../user-migrations/user-migrations.service.ts';
import type { UserErasure } from '../users/user-erasure.service.ts';
import { UserPages } from '../users/user-pages.service.ts';
import { WalletRulePreviews } from '../wallet-rules/preview.service.ts';
import { WalletRulePages } from '../wallet-rules/wallet-rule-pages.service.ts';
import { WalletRules } from '../wallet-rules/wallet-rules.service.ts';
import { WalletPages } from '../wallets/wallet-pages.service.ts';

/** What tools stand on. */
export interface McpServicesParts {
  db: Db;
  transactions: Pick<Transactions, 'registerByMutation'>;
  userMigrations: Pick<UserMigrations, 'inTurn' | 'migrateOne' | 'migrateMany'>;
  migrationFiles: Pick<MigrationFiles, 'start' | 'cancel'>;
  userErasure: Pick<UserErasure, 'erase'>;
  gasFees: Pick<GasFees, 'list'>;
  idempotentAnswers: Pick<IdempotentAnswers, 'alone' | 'answer'>;
  nowMs: () => number;
  /** Signs page cursors; the same on all replicas. */
  cursorKey: Uint8Array;
}

/** What tools call: the domain, below this adapter. */
export type McpServices = ReturnType<typeof mcpServices>;

/** The domain's services, as REST and GraphQL have them. */
export function mcpServices({ db, nowMs, cursorKey, ...shared }: McpServicesParts) {
  const walletRulePages = new WalletRulePages(db);
  return {
    ...shared,
    accountPages: new AccountPages(db),
    walletPages: new WalletPages(db),
    walletRulePages,
    walletRules: new WalletRules({ db, nowMs }),
    walletRulePreviews: new WalletRulePreviews({ pages: walletRulePages, nowMs }),
    networkPages: new NetworkPages(db),
    networkAssignments: new NetworkAssignments({ db, nowMs }),
    transactionPages: new TransactionPages(db),
    transactionEventPages: new TransactionEventPages(db),
    userPages: new UserPages(db),
    migrationPages: new MigrationPages(db),
    assets: new Assets(db),
    cursors: new PageCursors(cursorKey),
  };
}
