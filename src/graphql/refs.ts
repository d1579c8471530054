import type { AccountRow } from '../accounts/account-pages.service.ts';
import type { AssetRow } from '../assets/assets.service.ts';
import type { AuditRecordRow } from '../audit/audit-pages.service.ts';
import type { ClientRow } from '../clients/client-pages.service.ts';
import type { NetworkRow } from '../networks/network-pages.service.ts';
import type { SupervisorRow } from '../supervisors/supervisor-pages.service.ts';
import type { TransactionEventRow } from '../transactions/transaction-event-pages.service.ts';
import type { TransactionView } from '../transactions/transaction-view.ts';
import type { MigrationTableRow } from '../user-migrations/migration-pages.service.ts';
import type { UserRow } from '../users/user-pages.service.ts';
import type { WalletRuleRow } from '../wallet-rules/wallet-rule-pages.service.ts';
import type { WalletRow } from '../wallets/wallet-pages.service.ts';
import type { Builder } from './builder.ts';

/** The types that nouns refer to in each other; each noun implements its own. */
export function createRefs(builder: Builder) {
  return {
    account: builder.loadableObjectRef<AccountRow, string>('Account', {
      load: async (ids, { services, principal }) => {
        const rows = await services.accountPages.byIds(principal.nodeId, ids);
        const byId = new Map(rows.map((row) => [row.id, row]));
        return ids.map((id) => byId.get(id) ?? new Error(`the account ${id} is gone`));
      },
    }),
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

/** What `createRefs` gives. */
export type Refs = ReturnType<typeof createRefs>;
