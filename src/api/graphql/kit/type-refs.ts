import type { ClientRow } from '../../../access/clients/clients.service.ts';
import type { SupervisorRow } from '../../../access/supervisors/supervisors.service.ts';
import type { AuditRecordRow } from '../../../audit/audit-pages.service.ts';
import type { AccountRow } from '../../../domain/accounts/accounts.service.ts';
import type { AssetRow } from '../../../domain/assets/assets.service.ts';
import type { NetworkRow } from '../../../domain/networks/networks.service.ts';
import type { TransactionEventRow } from '../../../domain/transactions/transaction-pages.service.ts';
import type { TransactionView } from '../../../domain/transactions/transaction-view.ts';
import type { MigrationTableRow } from '../../../domain/user-migrations/migration-pages.service.ts';
import type { UserRow } from '../../../domain/users/users.service.ts';
import type { WalletRuleRow } from '../../../domain/wallet-rules/wallet-rules.service.ts';
import type { WalletRow } from '../../../domain/wallets/wallets.service.ts';
import type { Builder } from './builder.ts';

/** Creates the references of the object types, so that types can refer to one another; each noun implements its own. */
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
  };
}

/** The references that `createTypeRefs` returns. */
export type TypeRefs = ReturnType<typeof createTypeRefs>;
