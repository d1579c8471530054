import { type Plugin, useEngine } from '@envelop/core';
import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Principal } from '../../access/identity/callers.ts';
import type { AccessWatch } from '../../access/revocation/access-watch.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import type { Log } from '../../lib/log.ts';
import type { Tracer } from '../../lib/tracing.ts';
import type { FeatureServices } from '../shared/services.ts';
import type { OperationRequest } from './execution/documents.ts';
import { createEngine } from './execution/engine.ts';
import { ErrorMask } from './execution/error-masking.ts';
import { OperationObserver } from './execution/operation-observer.ts';
import type { PersistedDocuments } from './execution/persisted-file.ts';
import { SseStreams, sendResponse } from './execution/sse-streams.ts';
import { UPLOAD_LIMITS, type UploadLimits } from './execution/upload-form.ts';
import type { GraphqlContext, SharedPrincipal } from './kit/resolvers.ts';
import { OperationAudits } from './plugins/audit-masking.ts';
import { MAX_BATCH, useLimits } from './plugins/document-limits.ts';
import { type GraphqlHttpRequest, readRequest, useHttpRequests, useHttpResults } from './plugins/http.ts';
import {
  DocumentCache,
  type PersistedMode,
  PersistedOperations,
  usePersistedOperations,
} from './plugins/persisted-operations.ts';
import { type OperationRecord, socketProtocol } from './sockets/socket-operations.ts';
import { GraphqlSockets } from './sockets/sockets.ts';

const MEBIBYTE = 1024 * 1024;

/** The dependencies of the GraphQL runtime. */
export interface GraphqlDependencies {
  services: FeatureServices;
  /**
   * Checks that a token that was valid still is: not expired, not revoked and, on a WebSocket, of an accepted class and
   * with the permissions of the endpoint.
   * @throws InvalidTokenError when it is not; Refusal 403 when a token on a WebSocket lacks a permission.
   */
  recheck: (principal: Principal, exchange: Exchange) => Promise<void>;
  /**
   * Verifies an access token in full and returns its principal; undefined if the token is missing or invalid.
   * @throws Refusal 403 when a client guard refuses the request.
   */
  authenticateSocket: (token: string | undefined, exchange: Exchange) => Promise<Principal | undefined>;
  /** Reports when the access of an event stream or a WebSocket ends. */
  watch: Pick<AccessWatch, 'watch'>;
  /** Receives the audit record of each operation that was sent over a WebSocket. */
  recordOperation: (record: OperationRecord) => Promise<void>;
  /** Checks whether no audit record can be stored, so that operations of WebSockets are refused. */
  isAuditFull: () => boolean;
  /** Receives how long operations take. */
  durations?: OperationObserver['durations'];
  /** Traces operations. */
  tracer?: Tracer | undefined;
  log: Log;
  /** The maximum cost of an operation, roughly the number of objects that its result can have. */
  maxCost: number;
  /** The limits of requests with a file; by default 1 GiB, and one minute without a byte. */
  uploadLimits?: UploadLimits | undefined;
  introspection: boolean;
  /** Whether frequent queries run as compiled code. */
  jit: boolean;
  persistedMode: PersistedMode;
  /** Returns the persisted documents that are currently in force. */
  persistedDocuments: () => PersistedDocuments;
  /** Whether this is production, where errors suggest no names. */
  production: boolean;
  /** The options of GraphiQL besides its own; false if browsers are not shown it. */
  graphiql: false | { endpoint?: string };
}

/**
 * Creates the runtime for a schema, which runs operations over HTTP and WebSockets: Yoga with the plugins of this
 * service. Yoga's own masking and CORS are off.
 */
export function createGraphqlRuntime(schema: GraphQLSchema, deps: GraphqlDependencies) {
  const { log, introspection, jit, production, durations, tracer, uploadLimits = UPLOAD_LIMITS } = deps;
  const mask = new ErrorMask(log);
  const sse = new SseStreams(deps.watch);
  const audits = new OperationAudits(schema);
  const persisted = new PersistedOperations({ mode: deps.persistedMode, documents: deps.persistedDocuments });
  const yoga = createYoga<GraphqlHttpRequest>({
    schema,
    plugins: [
      useEngine(
        createEngine({
          introspection,
          hideSuggestions: production || !introspection,
          jit,
          observer: new OperationObserver(tracer, durations),
        }),
      ),
      useHttpRequests(audits),
      usePersistedOperations(persisted),
      useHttpResults(mask, sse, audits),
      audits.plugin(),
      useLimits(deps.maxCost),
      useOperationContext(deps),
    ],
    batching: { limit: MAX_BATCH },
    parserAndValidationCache: { documentCache: new DocumentCache(), errorCache: new DocumentCache() },
    maskedErrors: false,
    graphiql: false,
    landingPage: false,
    cors: false,
    logging: false,
    multipart: false,
    maxRequestBodySize: false,
  });
  const sockets = new GraphqlSockets({
    protocol: socketProtocol({ yoga, mask, persisted, authenticateSocket: deps.authenticateSocket }),
    recordOperation: (record) =>
      deps.recordOperation({
        ...record,
        auditedOperation: (secrets) => audits.ofSocket(record.params, record.responseText, secrets),
      }),
    isAuditFull: deps.isAuditFull,
    watch: deps.watch,
    log,
  });
  return {
    /**
     * Answers an HTTP request of a principal.
     * @throws Refusal 429 when the client has used up its rate or quota, unless the request is a batch; 413 when the
     * body exceeds the endpoint's limit, or an upload its own; 400 when a form is not a valid upload.
     */
    async answer(exchange: Exchange, bearer: Principal): Promise<void> {
      const { req, res } = exchange;
      audits.begin(exchange);
      const request = await readRequest(exchange, exchange.state.endpoint?.max_body_bytes ?? MEBIBYTE, {
        limits: uploadLimits,
        watch: (onEnd) => deps.watch.watch(bearer, exchange.guarded, onEnd),
      });
      const arrival = { exchange, bearer, isLater: false, ...request };
      try {
        const answer = await yoga.handleNodeRequestAndResponse(req, res, arrival);
        if (!sse.run(exchange)) await sendResponse(answer, res);
      } catch (error) {
        // Yoga rejects when the client has disconnected, and then there is no recipient of the error.
        if (!res.destroyed) throw error;
      }
    },
    accept: (exchange: Exchange) => sockets.accept(exchange),
    async stop(): Promise<void> {
      sse.stop();
      await sockets.stop();
    },
  };
}

/**
 * Creates the Envelop plugin that checks the token and builds the context of fields. It runs the client guards for each
 * operation of a WebSocket and for each of a batch except the first, which the guards of the request itself have
 * covered.
 */
function useOperationContext({
  recheck,
  services,
}: Pick<GraphqlDependencies, 'recheck' | 'services'>): Plugin<OperationRequest & Partial<GraphqlContext>> {
  async function checkAccess({ bearer, exchange, batch }: OperationRequest): Promise<void> {
    await recheck(bearer, exchange);
    if (!batch || batch.isBegun) return exchange.admit(bearer);
    batch.isBegun = true;
    if (exchange.state.limitRefusal) throw exchange.state.limitRefusal;
  }

  return {
    async onContextBuilding({ context, extendContext }) {
      if (context.isLater) await checkAccess(context);
      const { bearer, exchange } = context;
      const lastEventId = exchange.req.headers['last-event-id'];
      const operation: Omit<GraphqlContext, 'perOperation'> = {
        principal: sharedPrincipalOf(bearer),
        caller: {
          ...bearer,
          correlationId: exchange.correlationId,
          traceparent: exchange.span?.traceparent,
          lastEventId: typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : undefined,
          hasIdempotencyKey: false,
          isRefused: false,
        },
        services,
      };
      extendContext(operation);
    },
  };
}

/** Returns the part of a principal that the result of an event may depend on. */
export function sharedPrincipalOf({ nodeId, tokenClass, tokenUse, permissions }: Principal): SharedPrincipal {
  return { nodeId, tokenClass, tokenUse, permissions };
}
