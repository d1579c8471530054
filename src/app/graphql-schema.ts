import { GraphQLError, type GraphQLSchema, lexicographicSortSchema, parse, printSchema, validate } from 'graphql';
import type { PersistedDocuments } from '../api/graphql/execution/persisted-file.ts';
import { createBuilder } from '../api/graphql/kit/builder.ts';
import { addErrorTypes, addScalars } from '../api/graphql/kit/shared-types.ts';
import { addAccounts } from '../features/accounts/accounts.graphql.ts';
import { addActivity } from '../features/activity/activity.graphql.ts';
import { addAssets } from '../features/assets/assets.graphql.ts';
import { addAttention } from '../features/attention/attention.graphql.ts';
import { addAuditRecords } from '../features/audit-records/audit-records.graphql.ts';
import { addClients } from '../features/clients/clients.graphql.ts';
import { addGasFees } from '../features/gas-fee/gas-fee.graphql.ts';
import { addNetworks } from '../features/networks/networks.graphql.ts';
import { addViewer } from '../features/oauth/viewer.graphql.ts';
import { addSearch } from '../features/search/search.graphql.ts';
import { addSupervisors } from '../features/supervisors/supervisors.graphql.ts';
import { addTransactions } from '../features/transactions/transactions.graphql.ts';
import { addMigrations } from '../features/user-migrations/user-migrations.graphql.ts';
import { addUsers } from '../features/users/users.graphql.ts';
import { addWalletRules } from '../features/wallet-rules/wallet-rules.graphql.ts';
import { addWallets } from '../features/wallets/wallets.graphql.ts';

/** The functions that add the types and fields: the shared ones, then those of each noun. */
const PARTS = [
  addScalars,
  addErrorTypes,
  addViewer,
  addAccounts,
  addWallets,
  addNetworks,
  addWalletRules,
  addTransactions,
  addUsers,
  addMigrations,
  addAssets,
  addClients,
  addSupervisors,
  addAuditRecords,
  addGasFees,
  addActivity,
  addAttention,
  addSearch,
];

let built: GraphQLSchema | undefined;

/**
 * Returns the GraphQL schema, built once in a process. It holds no services, which the context of each operation
 * brings.
 */
export function graphqlSchema(): GraphQLSchema {
  built ??= buildSchema();
  return built;
}

function buildSchema(): GraphQLSchema {
  const builder = createBuilder();
  builder.queryType({
    description:
      'Reads data. Lists are Relay cursor connections. Error codes in `extensions`: FORBIDDEN, with the missing `permission`; BAD_USER_INPUT, with `issues`; INTERNAL_SERVER_ERROR, with the `correlationId`.',
  });
  builder.mutationType({
    description:
      'Changes data. A mutation returns its result or a typed error. After an error, nothing was changed. A missing permission is a ForbiddenError.',
  });
  builder.subscriptionType({
    description:
      'Live events, over SSE or graphql-transport-ws. When the token expires or is revoked, an event stream ends without `complete` and a WebSocket closes with 4403.',
  });
  for (const add of PARTS) add(builder);
  return builder.toSchema();
}

/** Returns the schema as sorted text, as in `schema/schema.graphql`. */
export function printedSchema(): string {
  return `${printSchema(lexicographicSortSchema(graphqlSchema()))}\n`;
}

/** Returns a message for each persisted document that cannot run on this schema, with its id and its first error. */
export function documentFaults(documents: PersistedDocuments): string[] {
  const faultsOf = (document: string): readonly GraphQLError[] => {
    try {
      return validate(graphqlSchema(), parse(document)).slice(0, 1);
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      throw error;
    }
  };
  return [...documents].flatMap(([id, document]) =>
    faultsOf(document).map(({ message }) => `contains the document ${id}, which is invalid: ${message}`),
  );
}
