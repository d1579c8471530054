import { createHmac } from 'node:crypto';
import type { Secrets } from './config/secrets.ts';
import type { Context } from './context.ts';
import { forbidden } from './errors/app-error.ts';
import { operationGuards, originOf } from './gateway/client-guards.ts';
import type { Endpoint } from './gateway/gateway-config.ts';
import { withinSpan } from './gateway/request-spans.ts';
import { missingPermissions } from './gateway/stages/permission.ts';
import type { PersistedFile } from './graphql/persisted-file.ts';
import { createGraphqlServer, type GraphqlServer } from './graphql/server.ts';
import type { Principal } from './oauth/principal.ts';

interface Surroundings {
  persisted: PersistedFile;
  /** What the table in force asks of an operation on a socket, which no stage of the chain sees; undefined: it has none. */
  socketEndpoint(): Endpoint | undefined;
}

/** GraphQL over the parts of this instance. */
export function graphqlOf(context: Context, { persisted, socketEndpoint }: Surroundings): GraphqlServer {
  const { config, secrets, database, transactions, streams, judge, audit, log } = context;
  const { userMigrations, migrationFiles, userErasure, clientAdministration, supervisorAdministration, locks, watch } =
    context;
  const { gasFees } = context;
  const acceptedTokens = () => socketEndpoint()?.tokens ?? [];
  const requirePermissions = (principal: Principal) => {
    const missing = missingPermissions(principal, socketEndpoint()?.permissions ?? []);
    if (missing.length > 0) throw forbidden(missing);
  };
  const guardOperation = operationGuards(context.directory, context.guards);
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
      const principal = await judge.judge(token, acceptedTokens());
      if (!principal) return undefined;
      requirePermissions(principal);
      await judge.passGuards(principal, originOf(exchange));
      return principal;
    },
    recheck: async (principal, { upgrade }) =>
      (!upgrade || acceptedTokens().includes(principal.tokenClass)) && judge.isGood(principal),
    passGuards: (principal, exchange) => {
      if (exchange.upgrade) requirePermissions(principal);
      return guardOperation(principal, exchange);
    },
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
