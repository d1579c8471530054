import { createHmac } from 'node:crypto';
import type { Secrets } from './config/secrets.ts';
import type { Context } from './context.ts';
import { operationGuards, originOf } from './gateway/client-guards.ts';
import { withinSpan } from './gateway/request-spans.ts';
import type { PersistedFile } from './graphql/persisted-file.ts';
import { createGraphqlServer, type GraphqlServer } from './graphql/server.ts';

/** GraphQL over the parts of this instance. */
export function graphqlOf(context: Context, persisted: PersistedFile): GraphqlServer {
  const { config, secrets, database, transactions, streams, judge, audit, log } = context;
  const { userMigrations, migrationFiles, userErasure, clientAdministration, supervisorAdministration, locks, watch } =
    context;
  const { gasFees } = context;
  return createGraphqlServer({
    db: database.db,
    transactions,
    userMigrations,
    migrationFiles,
    userErasure,
    clientAdministration,
    supervisorAdministration,
    locks,
    streams,
    gasFees,
    nowMs: context.nowMs,
    watchAccess: (principal, onEnd) => watch.watch(principal, onEnd),
    judge: async (token, exchange) => {
      const principal = await judge.judge(token);
      if (principal) await judge.passGuards(principal, originOf(exchange));
      return principal;
    },
    recheck: (principal) => judge.isGood(principal),
    passGuards: operationGuards(context.directory, context.guards),
    recordOperation: (operation) => withinSpan(operation.exchange, () => audit.recordOperation(operation)),
    observer: context.telemetry.operations,
    log,
    cursorKey: cursorKeyOf(secrets),
    maxCost: config.graphqlMaxCost,
    introspection: config.graphqlIntrospection,
    persistedMode: config.graphqlPersisted,
    persistedDocuments: () => persisted.documents,
    production: config.production,
    graphiql: !config.production,
  });
}

/** What page cursors are signed with: derived, so that replicas agree on cursors without one secret more. */
export function cursorKeyOf({ jwt }: Pick<Secrets, 'jwt'>): Uint8Array {
  return createHmac('sha256', jwt.user.current).update('portcullis page cursors').digest();
}
