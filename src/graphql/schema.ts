import type { GraphQLSchema } from 'graphql';
import { addAccounts } from '../accounts/accounts.graphql.ts';
import { addAssets } from '../assets/assets.graphql.ts';
import { addAuditRecords } from '../audit/audit-records.graphql.ts';
import { addClients } from '../clients/clients.graphql.ts';
import { addGasFees } from '../gas-fee/gas-fees.graphql.ts';
import { addNetworks } from '../networks/networks.graphql.ts';
import { addSupervisors } from '../supervisors/supervisors.graphql.ts';
import { addTransactions } from '../transactions/transactions.graphql.ts';
import { addMigrations } from '../user-migrations/migrations.graphql.ts';
import { addUsers } from '../users/users.graphql.ts';
import { addWalletRules } from '../wallet-rules/wallet-rules.graphql.ts';
import { addWallets } from '../wallets/wallets.graphql.ts';
import { createBuilder } from './builder.ts';
import { addErrorTypes } from './error-types.ts';
import { createRefs } from './refs.ts';
import { addScalars } from './scalars.ts';
import { addViewer } from './viewer.graphql.ts';

/** The schema that dashboards are written against. It holds no services: each operation's context brings them. */
export function buildSchema(): GraphQLSchema {
  const builder = createBuilder();
  builder.queryType({
    description:
      'Reads. Lists are Relay cursor connections. A permission that the token lacks is an error FORBIDDEN, whose extensions name the `permission`; what is not valid is BAD_USER_INPUT, with `issues`; what is unexpected is INTERNAL_SERVER_ERROR, with the `correlationId`.',
  });
  builder.mutationType({
    description:
      'Changes. Each gives its result, or a typed error, and then nothing was changed. A permission that the token lacks is a ForbiddenError.',
  });
  builder.subscriptionType({
    description:
      'What happens, as it happens: over SSE or graphql-transport-ws. A stream ends with UNAUTHENTICATED when its token does.',
  });
  builder.globalConnectionField('totalCount', (t) =>
    t.int({
      description: 'How many rows there are over all pages, exactly; counted only when asked for.',
      resolve: ({ totalCount }) => totalCount(),
    }),
  );
  addScalars(builder);
  addErrorTypes(builder);
  addViewer(builder);
  const refs = createRefs(builder);
  addAccounts(builder, refs);
  addWallets(builder, refs);
  addNetworks(builder, refs);
  addWalletRules(builder, refs);
  addTransactions(builder, refs);
  addUsers(builder, refs);
  addMigrations(builder, refs);
  addAssets(builder, refs);
  addClients(builder, refs);
  addSupervisors(builder, refs);
  addAuditRecords(builder, refs);
  addGasFees(builder);
  return builder.toSchema();
}
