import type { AccountFilter, AccountRow } from '../../domain/accounts/accounts.service.ts';
import type { AssetRow } from '../../domain/assets/assets.service.ts';
import type { Domain } from '../../domain/domain.ts';
import type { NetworkRow } from '../../domain/networks/networks.service.ts';
import type {
  ListedTransaction,
  TransactionEventRow,
  TransactionFilter,
} from '../../domain/transactions/transaction-pages.service.ts';
import type { MigrationRowRow, MigrationTableRow } from '../../domain/user-migrations/migration-pages.service.ts';
import type { UserFilter, UserRow } from '../../domain/users/users.service.ts';
import type { WalletRuleRow, WalletRuleVersionRow } from '../../domain/wallet-rules/wallet-rules.service.ts';
import type { WalletFilter, WalletRow } from '../../domain/wallets/wallets.service.ts';
import { isUuid } from '../../lib/input.ts';
import type { Page, PageKey } from '../../lib/keyset.ts';
import type { KeysetList, NestedList } from '../../platform/database/keyset-list.ts';
import { notFoundRefusal } from '../../platform/errors.ts';

/** A list of a tenant's rows in one order, which GraphQL and MCP return in pages. */
export interface List<Filter, Row, Services = Domain> {
  /** Returns the service that reads the list. */
  of(services: Services): Pick<KeysetList<Row, Filter>, 'page' | 'count'>;
  /** Returns the sort key of a row, for its cursor. */
  keyOf(row: Row): PageKey;
}

/**
 * Lists that belong to an owning object each, such as the wallets of an account; they are read for many owners at once.
 */
export interface OwnedLists<Row> {
  /** Returns the service that reads the lists. */
  of(services: Domain): NestedList<Row>;
  keyOf(row: Row): PageKey;
}

/** The page of an owner without rows. */
export const NO_ROWS: Page<never> = { rows: [], hasMore: false };

/** Returns the list of a single owner, whose id is the filter. */
export function ofOneOwner<Row>({ of, keyOf }: OwnedLists<Row>): List<string, Row> {
  return {
    of: (services) => {
      const lists = of(services);
      return {
        page: async (nodeId, ownerId, request) =>
          (await lists.pages(nodeId, [ownerId], request)).get(ownerId) ?? NO_ROWS,
        count: async (nodeId, ownerId) => (await lists.counts(nodeId, [ownerId])).get(ownerId) ?? 0,
      };
    },
    keyOf,
  };
}

/**
 * Returns the list of a single owner, whose id in lower case is the filter; what is no UUID, and an owner that does not
 * exist, is refused as `not_found`.
 */
export function ofKnownOwner<Row>(
  lists: OwnedLists<Row>,
  exists: (services: Domain, nodeId: string, id: string) => Promise<boolean>,
): List<string, Row> {
  const ofOne = ofOneOwner(lists);
  return {
    ...ofOne,
    of: (services) => ({
      ...ofOne.of(services),
      page: async (nodeId, id, request) => {
        if (!isUuid(id) || !(await exists(services, nodeId, id))) throw notFoundRefusal();
        return ofOne.of(services).page(nodeId, id, request);
      },
    }),
  };
}

/** Returns the sort key of a row in a list that is ordered by creation time. */
export function byCreation({ created_at: at, id }: { created_at: string; id: string }): PageKey {
  return { at, id };
}

function byAssignment({ at, id }: NetworkRow): PageKey {
  return { at, id };
}

export const ACCOUNTS: List<AccountFilter, AccountRow> = { of: ({ accountPages }) => accountPages, keyOf: byCreation };
export const WALLETS: List<WalletFilter, WalletRow> = { of: ({ walletPages }) => walletPages, keyOf: byCreation };
export const WALLETS_OF_ACCOUNTS: OwnedLists<WalletRow> = {
  of: ({ walletPages }) => walletPages.ofAccounts,
  keyOf: byCreation,
};
export const RULES_OF_WALLETS: OwnedLists<WalletRuleRow> = {
  of: ({ walletRulePages }) => walletRulePages.ofWallets,
  keyOf: byCreation,
};
export const VERSIONS_OF_RULES: OwnedLists<WalletRuleVersionRow> = {
  of: ({ walletRulePages }) => walletRulePages.versions,
  keyOf: ({ version }) => ({ at: String(version), id: '' }),
};
/** The versions of one rule, which may be gone; a rule that never was is refused as `not_found`. */
export const VERSIONS_OF_RULE = ofKnownOwner(
  VERSIONS_OF_RULES,
  async ({ walletRulePages }, nodeId, id) => (await walletRulePages.versions.counts(nodeId, [id])).size > 0,
);
export const NETWORKS: List<object, NetworkRow> = { of: ({ networkPages }) => networkPages, keyOf: byAssignment };
export const NETWORKS_OF_WALLETS: OwnedLists<NetworkRow> = {
  of: ({ networkPages }) => networkPages.ofWallets,
  keyOf: byAssignment,
};
export const TRANSACTIONS: List<TransactionFilter, ListedTransaction> = {
  of: ({ transactionPages }) => transactionPages,
  keyOf: ({ registeredAt, id }) => ({ at: registeredAt, id }),
};
export const EVENTS_OF_TRANSACTIONS: OwnedLists<TransactionEventRow> = {
  of: ({ transactionEventPages }) => transactionEventPages.ofTransactions,
  keyOf: ({ seq }) => ({ at: seq, id: '' }),
};
export const USERS: List<UserFilter, UserRow> = { of: ({ userPages }) => userPages, keyOf: byCreation };
export const MIGRATIONS: List<object, MigrationTableRow> = {
  of: ({ migrationPages }) => migrationPages,
  keyOf: byCreation,
};
export const ROWS_OF_MIGRATIONS: OwnedLists<MigrationRowRow> = {
  of: ({ migrationPages }) => migrationPages.rows,
  keyOf: ({ index }) => ({ at: String(index), id: '' }),
};
export const ASSETS: List<object, AssetRow> = { of: ({ assets }) => assets, keyOf: byCreation };
