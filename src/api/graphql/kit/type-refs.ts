import type { ClientRow } from '../../../access/clients/clients.service.ts';
import type { SupervisorRow } from '../../../access/supervisors/supervisors.service.ts';
import type { AuditRecordRow } from '../../../audit/audit-pages.service.ts';
import type { AccountRow } from '../../../domain/accounts/accounts.service.ts';
import type { AssetRow } from '../../../domain/assets/assets.service.ts';
import type { NetworkRow } from '../../../domain/networks/networks.service.ts';
import type { TransactionEventRow } from '../../../domain/transactions/transaction-pages.service.ts';
import type { TransactionView } from '../../../domain/transactions/transaction-view.ts';
import { STATUS, type TransactionCollection } from '../../../domain/transactions/type-codes.rules.ts';
import type { MigrationTableRow } from '../../../domain/user-migrations/migration-pages.service.ts';
import type { UserRow } from '../../../domain/users/users.service.ts';
import type { WalletRuleRow } from '../../../domain/wallet-rules/wallet-rules.service.ts';
import type { WalletRow } from '../../../domain/wallets/wallets.service.ts';
import type { DuplicateReason } from '../../../platform/errors.ts';
import type { AutoTransferRule, RuleType, TimePeriod } from '../../../tables/wallet-rule-content.ts';
import { type Builder, enumOf } from './builder.ts';

/**
 * Adds the enums, and creates the references of the object types, so that types can refer to one another; each noun
 * implements its own.
 */
export function createTypeRefs(builder: Builder) {
  return {
    account: builder.objectRef<AccountRow>('Account'),
    wallet: builder.objectRef<WalletRow>('Wallet'),
    walletRule: builder.objectRef<WalletRuleRow>('WalletRule'),
    network: builder.objectRef<NetworkRow>('Network'),
    transaction: builder.objectRef<TransactionView>('Transaction'),
    user: builder.objectRef<UserRow>('User'),
    migration: builder.objectRef<MigrationTableRow>('Migration'),
    asset: builder.objectRef<AssetRow>('Asset'),
    client: builder.objectRef<ClientRow>('Client'),
    supervisor: builder.objectRef<SupervisorRow>('Supervisor'),
    auditRecord: builder.objectRef<AuditRecordRow>('AuditRecord'),
    transactionEvent: builder.objectRef<TransactionEventRow>('TransactionEvent'),
    grantType: enumOf(builder, 'GrantType', 'A way to get a token (RFC 6749).', {
      password: 'A supervisor logs in through the client.',
      client_credentials: 'The client gets a token for itself.',
      refresh_token: 'Exchanges a refresh token for a new pair.',
    }),
    clientStatus: enumOf(builder, 'ClientStatus', 'Whether a client can get and use tokens.', {
      active: 'It can get tokens.',
      disabled: 'Its credentials and tokens are rejected.',
    }),
    supervisorStatus: enumOf(builder, 'SupervisorStatus', 'Whether a supervisor can log in.', {
      active: 'Can log in.',
      disabled: 'Cannot log in, and has no session.',
    }),
    migrationStatus: enumOf(builder, 'MigrationStatus', 'The status of a migration of users.', {
      running: 'Rows are still being applied.',
      done: 'Every row has been applied.',
      cancelled: 'It was cancelled before its last row; the users that it created are kept.',
      failed: 'It could not continue; the users that it created are kept.',
    }),
    walletRuleStatus: enumOf(builder, 'WalletRuleStatus', 'Whether a rule can fire.', {
      active: 'It fires when its conditions are true.',
      disabled: 'It is stored but never fires.',
    }),
    ruleType: enumOf<RuleType>(
      builder,
      'RuleType',
      'What a rule does.',
      {
        auto_transfer: 'Transfers an amount when its conditions are true.',
        permissionless_transfer_limit: 'Limits the transfers that need no approval.',
      },
      String,
    ),
    autoTransferType: enumOf<AutoTransferRule['type']>(
      builder,
      'AutoTransferType',
      'Whether an automatic transfer waits for approval.',
      { auto: 'It is made at once.', auto_with_approve: 'It waits for approval.' },
      String,
    ),
    timePeriod: enumOf<TimePeriod>(
      builder,
      'TimePeriod',
      'The period of the window of a limit.',
      {
        hour: '60 minutes.',
        day: '24 hours.',
        week: 'Seven days.',
        month: 'A calendar month in UTC.',
        year: 'A calendar year in UTC.',
      },
      String,
    ),
    duplicateReason: enumOf<DuplicateReason>(
      builder,
      'DuplicateReason',
      'What another object already has.',
      {
        duplicate_id: 'The id.',
        duplicate_email: 'The email, compared by its key.',
        duplicate_external_id: 'The external id.',
        duplicate_wallet: 'The wallet address.',
        duplicate_username: 'The username, compared by its key.',
      },
      String,
    ),
    transactionStatus: builder.enumType('TransactionStatus', {
      description: 'The status of a transaction.',
      values: {
        STARTED: { value: STATUS.Started, description: 'The chain processor has queued it.' },
        IN_PROGRESS: { value: STATUS.InProgress, description: 'The chain processor is preparing or signing it.' },
        DONE: { value: STATUS.Done, description: 'It is confirmed on the chain. Final.' },
        ERROR: { value: STATUS.Error, description: 'It failed. Final.' },
        PENDING_RECEIPT: { value: STATUS.PendingReceipt, description: 'It was broadcast and waits for its receipt.' },
      } as const,
    }),
    transactionCollection: enumOf<TransactionCollection>(
      builder,
      'TransactionCollection',
      'The collection of a transaction; it determines the meaning of the type code.',
      {
        token_transactions: 'Transactions of tokenized assets.',
        node_transactions: 'Transactions of the tenant (node) itself.',
        currency_token_transactions: 'Transactions of currency tokens.',
        user_transactions: 'Transactions of users on the primary market.',
        secondary_market_transactions: 'Transactions of users on the secondary market.',
        otc_transactions: 'Transactions of users over the counter.',
      },
    ),
  };
}

/** The references that `createTypeRefs` returns. */
export type TypeRefs = ReturnType<typeof createTypeRefs>;
