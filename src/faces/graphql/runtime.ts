import type { Principal } from '../../access/identity/principal.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { OperationAudits } from './execution/audit-masking.ts';
import { ErrorMask } from './execution/error-masking.ts';
import { bringsForm, readRequestBody } from './execution/http-requests.ts';
import type { OperationRecord } from './execution/operation-records.ts';
import { PersistedOperations } from './execution/persisted-operations.ts';
import { socketProtocol } from './execution/socket-operations.ts';
import { GraphqlSockets } from './execution/sockets.ts';
import { SseStreams } from './execution/sse.ts';
import { UPLOAD_LIMITS } from './execution/upload-form.ts';
import { readUpload } from './execution/uploads.ts';
import { createYogaServer, sendResponse } from './execution/yoga.ts';
import type { GraphqlServerDeps } from './graphql-server.ts';
import { buildSchema } from './schema.ts';

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
  const persisted = new PersistedOperations(deps.persistedMode, deps.persistedDocuments);
  const yoga = createYogaServer({ ...deps, schema, mask, sse, audits, persisted });
  const protocol = socketProtocol({ yoga, mask, persisted, judge: deps.judge });
  const recordOperation = (record: OperationRecord) =>
    deps.recordOperation({ ...record, audited: audits.ofSocket(record) });
  const sockets = new GraphqlSockets({ protocol, recordOperation, log });
  return {
    async answer(exchange, principal) {
      const { req, res } = exchange;
      const { endpoint } = exchange.found;
      audits.begin(exchange);
      const upload = bringsForm(req) ? await readUpload(exchange, uploadLimits) : undefined;
      const maxBytes = endpoint?.max_body_bytes ?? MEBIBYTE;
      const body = upload ? undefined : await readRequestBody(exchange, maxBytes);
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
      deps.services.migrationProgress.stop();
    },
  };
}
