/* eslint-disable */
import * as types from './graphql.ts';
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';

/**
 * Map of all GraphQL operations in the project.
 *
 * This map has several performance disadvantages:
 * 1. It is not tree-shakeable, so it will include all operations in the project.
 * 2. It is not minifiable, so the string of a GraphQL query will be multiple times inside the bundle.
 * 3. It does not support dead code elimination, so it will add unused operations.
 *
 * Therefore it is highly recommended to use the babel or swc plugin for production.
 * Learn more about it here: https://the-guild.dev/graphql/codegen/plugins/presets/preset-client#reducing-bundle-size
 */
type Documents = {
    "query Accounts($filter: AccountFilter, $first: Int, $after: String) {\n  accounts(filter: $filter, first: $first, after: $after) {\n    totalCount\n    pageInfo {\n      hasNextPage\n      endCursor\n    }\n    edges {\n      node {\n        id\n        name\n        type\n        status\n        createdAt\n        deletedAt\n      }\n    }\n  }\n}\n\nquery Account($id: ID!) {\n  account(id: $id) {\n    id\n    name\n    wallets {\n      totalCount\n      edges {\n        node {\n          id\n          chain\n        }\n      }\n    }\n  }\n}": typeof types.AccountsDocument,
    "query Transaction($id: ID!) {\n  transaction(id: $id) {\n    ...TransactionParts\n    events {\n      edges {\n        node {\n          cursor\n          status\n          previousStatus\n          correlationId\n        }\n      }\n    }\n  }\n}\n\nmutation RegisterTransaction($input: RegisterTransactionInput!) {\n  registerTransaction(input: $input) {\n    __typename\n    ... on Transaction {\n      ...TransactionParts\n    }\n    ... on Error {\n      message\n    }\n    ... on ValidationError {\n      issues {\n        path\n        message\n      }\n    }\n    ... on DuplicateError {\n      reason\n    }\n    ... on ForbiddenError {\n      permission\n    }\n  }\n}\n\nsubscription TransactionUpdates($filter: TransactionFilter, $after: String) {\n  transactionUpdates(filter: $filter, after: $after) {\n    cursor\n    event\n    previousStatus\n    correlationId\n    transaction {\n      ...TransactionParts\n    }\n  }\n}\n\nsubscription TransactionStates($id: ID!) {\n  transaction(id: $id) {\n    ...TransactionParts\n  }\n}\n\nfragment TransactionParts on Transaction {\n  id\n  collection\n  type\n  typeName\n  status\n  transactionHash\n  gasUsed\n  error\n  conflict\n  updatedAt\n}": typeof types.TransactionDocument,
};
const documents: Documents = {
    "query Accounts($filter: AccountFilter, $first: Int, $after: String) {\n  accounts(filter: $filter, first: $first, after: $after) {\n    totalCount\n    pageInfo {\n      hasNextPage\n      endCursor\n    }\n    edges {\n      node {\n        id\n        name\n        type\n        status\n        createdAt\n        deletedAt\n      }\n    }\n  }\n}\n\nquery Account($id: ID!) {\n  account(id: $id) {\n    id\n    name\n    wallets {\n      totalCount\n      edges {\n        node {\n          id\n          chain\n        }\n      }\n    }\n  }\n}": types.AccountsDocument,
    "query Transaction($id: ID!) {\n  transaction(id: $id) {\n    ...TransactionParts\n    events {\n      edges {\n        node {\n          cursor\n          status\n          previousStatus\n          correlationId\n        }\n      }\n    }\n  }\n}\n\nmutation RegisterTransaction($input: RegisterTransactionInput!) {\n  registerTransaction(input: $input) {\n    __typename\n    ... on Transaction {\n      ...TransactionParts\n    }\n    ... on Error {\n      message\n    }\n    ... on ValidationError {\n      issues {\n        path\n        message\n      }\n    }\n    ... on DuplicateError {\n      reason\n    }\n    ... on ForbiddenError {\n      permission\n    }\n  }\n}\n\nsubscription TransactionUpdates($filter: TransactionFilter, $after: String) {\n  transactionUpdates(filter: $filter, after: $after) {\n    cursor\n    event\n    previousStatus\n    correlationId\n    transaction {\n      ...TransactionParts\n    }\n  }\n}\n\nsubscription TransactionStates($id: ID!) {\n  transaction(id: $id) {\n    ...TransactionParts\n  }\n}\n\nfragment TransactionParts on Transaction {\n  id\n  collection\n  type\n  typeName\n  status\n  transactionHash\n  gasUsed\n  error\n  conflict\n  updatedAt\n}": types.TransactionDocument,
};

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 *
 *
 * @example
 * ```ts
 * const query = graphql(`query GetUser($id: ID!) { user(id: $id) { name } }`);
 * ```
 *
 * The query argument is unknown!
 * Please regenerate the types.
 */
export function graphql(source: string): unknown;

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "query Accounts($filter: AccountFilter, $first: Int, $after: String) {\n  accounts(filter: $filter, first: $first, after: $after) {\n    totalCount\n    pageInfo {\n      hasNextPage\n      endCursor\n    }\n    edges {\n      node {\n        id\n        name\n        type\n        status\n        createdAt\n        deletedAt\n      }\n    }\n  }\n}\n\nquery Account($id: ID!) {\n  account(id: $id) {\n    id\n    name\n    wallets {\n      totalCount\n      edges {\n        node {\n          id\n          chain\n        }\n      }\n    }\n  }\n}"): (typeof documents)["query Accounts($filter: AccountFilter, $first: Int, $after: String) {\n  accounts(filter: $filter, first: $first, after: $after) {\n    totalCount\n    pageInfo {\n      hasNextPage\n      endCursor\n    }\n    edges {\n      node {\n        id\n        name\n        type\n        status\n        createdAt\n        deletedAt\n      }\n    }\n  }\n}\n\nquery Account($id: ID!) {\n  account(id: $id) {\n    id\n    name\n    wallets {\n      totalCount\n      edges {\n        node {\n          id\n          chain\n        }\n      }\n    }\n  }\n}"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "query Transaction($id: ID!) {\n  transaction(id: $id) {\n    ...TransactionParts\n    events {\n      edges {\n        node {\n          cursor\n          status\n          previousStatus\n          correlationId\n        }\n      }\n    }\n  }\n}\n\nmutation RegisterTransaction($input: RegisterTransactionInput!) {\n  registerTransaction(input: $input) {\n    __typename\n    ... on Transaction {\n      ...TransactionParts\n    }\n    ... on Error {\n      message\n    }\n    ... on ValidationError {\n      issues {\n        path\n        message\n      }\n    }\n    ... on DuplicateError {\n      reason\n    }\n    ... on ForbiddenError {\n      permission\n    }\n  }\n}\n\nsubscription TransactionUpdates($filter: TransactionFilter, $after: String) {\n  transactionUpdates(filter: $filter, after: $after) {\n    cursor\n    event\n    previousStatus\n    correlationId\n    transaction {\n      ...TransactionParts\n    }\n  }\n}\n\nsubscription TransactionStates($id: ID!) {\n  transaction(id: $id) {\n    ...TransactionParts\n  }\n}\n\nfragment TransactionParts on Transaction {\n  id\n  collection\n  type\n  typeName\n  status\n  transactionHash\n  gasUsed\n  error\n  conflict\n  updatedAt\n}"): (typeof documents)["query Transaction($id: ID!) {\n  transaction(id: $id) {\n    ...TransactionParts\n    events {\n      edges {\n        node {\n          cursor\n          status\n          previousStatus\n          correlationId\n        }\n      }\n    }\n  }\n}\n\nmutation RegisterTransaction($input: RegisterTransactionInput!) {\n  registerTransaction(input: $input) {\n    __typename\n    ... on Transaction {\n      ...TransactionParts\n    }\n    ... on Error {\n      message\n    }\n    ... on ValidationError {\n      issues {\n        path\n        message\n      }\n    }\n    ... on DuplicateError {\n      reason\n    }\n    ... on ForbiddenError {\n      permission\n    }\n  }\n}\n\nsubscription TransactionUpdates($filter: TransactionFilter, $after: String) {\n  transactionUpdates(filter: $filter, after: $after) {\n    cursor\n    event\n    previousStatus\n    correlationId\n    transaction {\n      ...TransactionParts\n    }\n  }\n}\n\nsubscription TransactionStates($id: ID!) {\n  transaction(id: $id) {\n    ...TransactionParts\n  }\n}\n\nfragment TransactionParts on Transaction {\n  id\n  collection\n  type\n  typeName\n  status\n  transactionHash\n  gasUsed\n  error\n  conflict\n  updatedAt\n}"];

export function graphql(source: string) {
  return (documents as any)[source] ?? {};
}

export type DocumentType<TDocumentNode extends DocumentNode<any, any>> = TDocumentNode extends DocumentNode<  infer TType,  any>  ? TType  : never;