import type {
  TransactionStateSubscription,
  TransactionStateSubscriptionVariables,
  TransactionUpdatesSubscription,
  TransactionUpdatesSubscriptionVariables,
} from './generated/graphql.ts';

/** A GraphQL document that knows its types, as GraphQL Code Generator writes it (`documentMode: string`). */
export interface TypedDocument<Result, Variables> {
  toString(): string;
  __apiType?: ((variables: Variables) => Result) | undefined;
}

export type { TransactionCollection, TransactionFilter, TransactionStatus } from './generated/graphql.ts';

export type TransactionUpdate = TransactionUpdatesSubscription['transactionUpdates'];
export type Transaction = TransactionStateSubscription['transaction'];

export const UPDATES: TypedDocument<TransactionUpdatesSubscription, TransactionUpdatesSubscriptionVariables> =
  /* GraphQL */ `
    subscription TransactionUpdates($after: String, $filter: TransactionFilter) {
      transactionUpdates(after: $after, filter: $filter) {
        cursor
        previousStatus
        correlationId
        transaction {
          id collection type typeName status conflict transactionHash contractAddress gasUsed error createdAt updatedAt
        }
      }
    }
  `;

export const TRANSACTION: TypedDocument<TransactionStateSubscription, TransactionStateSubscriptionVariables> =
  /* GraphQL */ `
    subscription TransactionState($id: ID!) {
      transaction(id: $id) {
        id collection type typeName status conflict transactionHash contractAddress gasUsed error createdAt updatedAt
      }
    }
  `;
