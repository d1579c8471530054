import { AccountPages } from '../accounts/account-pages.service.ts';
import { Assets } from '../assets/assets.service.ts';
import { AuditPages } from '../audit/audit-pages.service.ts';
import { ClientPages } from '../clients/client-pages.service.ts';
import type { Exchange } from '../gateway/exchange.ts';
import { PageCursors } from '../lib/keyset.ts';
import { NetworkAssignments } from '../networks/network-assignments.service.ts';
import { NetworkPages } from '../networks/network-pages.service.ts';
import type { Principal } from '../oauth/principal.ts';
import { systemClock } from '../realtime/clock.ts';
import { SupervisorPages } from '../supervisors/supervisor-pages.service.ts';
import { TransactionEventPages } from '../transactions/transaction-event-pages.service.ts';
import { TransactionPages } from '../transactions/transaction-pages.service.ts';
import { MigrationPages } from '../user-migrations/migration-pages.service.ts';
import { ProgressFeeds } from '../user-migrations/progress-feeds.ts';
import { UserPages } from '../users/user-pages.service.ts';
import { WalletRulePreviews } from '../wallet-rules/preview.service.ts';
import { WalletRulePages } from '../wallet-rules/wallet-rule-pages.service.ts';
import { WalletRules } from '../wallet-rules/wallet-rules.service.ts';
import { WalletPages } from '../wallets/wallet-pages.service.ts';
import { OperationAudits } from './audit-masking.ts';
import type { GraphqlServices } from './context.ts';
import { bringsForm } from './csrf.rules.ts';
import { readArrival } from './http-requests.ts';
import { ErrorMask } from './masking.ts';
import type { OperationRecord } from './operation-records.ts';
import { PersistedOperations } from './persisted-operations.ts';
import { buildSchema } from './schema.ts';
import { sendResponse } from './send-response.ts';
import type { GraphqlServerDeps } from './server.ts';
import { socketProtocol } from './socket-operations.ts';
import { GraphqlSockets } from './sockets.ts';
import { SseStreams } from './sse.ts';
import { UPLOAD_LIMITS } from './upload-form.ts';
import { readUpload } from './uploads.ts';
import { createYogaServer } from './yoga.ts';

const MEBIBYTE = 1024 * 1024;

/** What runs operations. */
export interface GraphqlRuntime {
  /**
   * Answers a request of a principal.
   * @throws AppError 429 where a limit of the client is used up, unless a batch came; 413 for a body over the endpoint's
   * limit, or an upload over its own; 400 for a form that is no upload.
   */
  answer(exchange: Exchange, principal: Principal): Promise<void>;
  accept(exchange: Exchange): void;
  stop(): Promise<void>;
}

/** Builds the schema and everything that serves it. */
export function createGraphqlRuntime(deps: GraphqlServerDeps): GraphqlRuntime {
  const { log, uploadLimits = UPLOAD_LIMITS } = deps;
  const mask = new ErrorMask(log);
  const sse = new SseStreams();
  const schema = buildSchema();
  const audits = new OperationAudits(schema);
  const migrationProgress = progressOf(deps);
  const services = servicesOf(deps, migrationProgress);
  const persisted = new PersistedOperations(deps.persistedMode, deps.persistedDocuments);
  const yoga = createYogaServer({ ...deps, schema, services, mask, sse, audits, persisted });
  const protocol = socketProtocol({ yoga, mask, persisted, judge: deps.judge });
  const recordOperation = (record: OperationRecord) =>
    deps.recordOperation({ ...record, audited: audits.ofSocket(record) });
  const sockets = new GraphqlSockets({ protocol, recordOperation, log });
  return {
    async answer(exchange, principal) {
      const { req, res, match } = exchange;
      audits.begin(exchange);
      const upload = bringsForm(req) ? await readUpload(exchange, uploadLimits) : undefined;
      const maxBytes = match?.endpoint.max_body_bytes ?? MEBIBYTE;
      const body = upload ? undefined : await readArrival(exchange, maxBytes);
      const arrival = { exchange, bearer: principal, body, upload, isLater: false };
      try {
        const answer = await yoga.handleNodeRequestAndResponse(req, res, arrival);
        if (!sse.run(answer)) await sendResponse(answer, res);
      } catch (error) {
        // Yoga gives up what nobody waits for any more.
        if (!res.destroyed) throw error;
      }
    },
    accept: (exchange) => sockets.accept(exchange),
    async stop() {
      sse.stop();
      await sockets.stop();
      // Behind the sockets, whose clients would be told that their subscriptions have failed.
      migrationProgress.stop();
    },
  };
}

function progressOf({ migrationFiles, nowMs, log }: GraphqlServerDeps): ProgressFeeds {
  return new ProgressFeeds({
    progress: (nodeId, id) => migrationFiles.progress(nodeId, id),
    clock: { ...systemClock, nowMs },
    onError: (error) => log.error({ err: error }, 'how far a migration is cannot be read'),
  });
}

function servicesOf(deps: GraphqlServerDeps, migrationProgress: ProgressFeeds): GraphqlServices {
  const { db, cursorKey, transactions, clientAdministration, supervisorAdministration, locks } = deps;
  const { streams, watchAccess, nowMs, userMigrations, userErasure, migrationFiles, gasFees } = deps;
  const walletRulePages = new WalletRulePages(db);
  return {
    accountPages: new AccountPages(db),
    walletPages: new WalletPages(db),
    walletRulePages,
    walletRules: new WalletRules({ db, nowMs }),
    walletRulePreviews: new WalletRulePreviews({ pages: walletRulePages, nowMs }),
    networkPages: new NetworkPages(db),
    networkAssignments: new NetworkAssignments({ db, nowMs }),
    transactionPages: new TransactionPages(db),
    transactionEventPages: new TransactionEventPages(db),
    transactions,
    userPages: new UserPages(db),
    userMigrations,
    userErasure,
    migrationPages: new MigrationPages(db),
    migrationFiles,
    migrationProgress,
    assets: new Assets(db),
    clientPages: new ClientPages(db),
    clientAdministration,
    supervisorPages: new SupervisorPages(db),
    supervisorAdministration,
    locks,
    auditPages: new AuditPages(db),
    gasFees,
    streams,
    watchAccess,
    cursors: new PageCursors(cursorKey),
  };
}
