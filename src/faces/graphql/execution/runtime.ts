import { type Plugin, useEngine } from '@envelop/core';
import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Principal } from '../../../access/identity/principal.ts';
import { TokenEndedError } from '../../../events/streams/stream-errors.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { Log } from '../../../lib/log.ts';
import type { GraphqlContext, GraphqlServices, SharedPrincipal } from '../kit/graphql-context.ts';
import { OperationAudits } from './audit-masking.ts';
import { type GraphqlBatch, MAX_BATCH, useLimits } from './document-limits.ts';
import { createEngine } from './engine.ts';
import { ErrorMask } from './error-masking.ts';
import { GRAPHIQL_HEADERS, GRAPHIQL_OPTIONS, renderGraphiql } from './graphiql.ts';
import { type GraphqlHttpRequest, readRequest, useHttpRequests } from './http-requests.ts';
import { SseStreams, sendResponse, useHttpResults } from './http-results.ts';
import type { OperationObserver } from './operation-observer.ts';
import {
  DocumentCache,
  type PersistedDocuments,
  type PersistedMode,
  PersistedOperations,
  usePersistedOperations,
} from './persisted-operations.ts';
import { type OperationRecord, socketProtocol } from './socket-operations.ts';
import { GraphqlSockets } from './sockets.ts';
import { UPLOAD_LIMITS, type UploadLimits } from './upload-form.ts';

const MEBIBYTE = 1024 * 1024;

/** The dependencies of the GraphQL runtime. */
export interface GraphqlDeps {
  services: GraphqlServices;
  /**
   * Verifies an access token in full and returns its principal; undefined if the token is missing or invalid.
   * @throws AppError 403 when a client guard refuses the request.
   */
  judge: (token: string | undefined, exchange: Exchange) => Promise<Principal | undefined>;
  /**
   * Checks whether a token that was valid still is: not expired, not revoked and, on a WebSocket, of an accepted class.
   */
  recheck: (principal: Principal, exchange: Exchange) => Promise<boolean>;
  /**
   * Counts an operation of a WebSocket, or another one of a batch, against the client's limits.
   * @throws AppError 403 or 429 when a client guard refuses, or when a token on a WebSocket lacks a permission of the
   * endpoint.
   */
  passGuards: (principal: Principal, exchange: Exchange) => void | Promise<void>;
  /** Receives the audit record of each operation that was sent over a WebSocket. */
  recordOperation: (record: OperationRecord) => void;
  /** Measures and traces operations. */
  observer?: OperationObserver | undefined;
  log: Log;
  /** The maximum cost of an operation, roughly the number of objects that its result can have. */
  maxCost: number;
  /** The limits of requests with a file; by default 1 GiB, and one minute without a byte. */
  uploadLimits?: UploadLimits | undefined;
  introspection: boolean;
  persistedMode: PersistedMode;
  /** Returns the persisted documents that are currently in force. */
  persistedDocuments: () => PersistedDocuments;
  /** Whether this is production, where errors suggest no names. */
  production: boolean;
  /** Whether browsers are shown GraphiQL. */
  graphiql: boolean;
}

/** An operation as it arrives, over HTTP or a WebSocket. */
export interface OperationRequest {
  exchange: Exchange;
  /** The principal that sent the operation. The context of its fields has only a part of it. */
  bearer: Principal;
  /**
   * Whether the token must be checked again, because time has passed since the gateway verified it: on a WebSocket and
   * in a batch.
   */
  isLater: boolean;
  /** The GraphQL batch that the operation came in; undefined if it came alone. */
  batch?: GraphqlBatch;
}

/** Runs operations over HTTP and WebSockets. */
export interface GraphqlRuntime {
  /**
   * Answers an HTTP request of a principal.
   * @throws AppError 429 when the client has used up its rate or quota, unless the request is a batch; 413 when the
   * body exceeds the endpoint's limit, or an upload its own; 400 when a form is no valid upload.
   */
  answer(exchange: Exchange, principal: Principal): Promise<void>;
  /** Answers a browser's GET with the GraphiQL page. */
  showPage(exchange: Exchange): Promise<void>;
  accept(exchange: Exchange): void;
  stop(): Promise<void>;
}

/**
 * Creates the runtime for a schema: Yoga with the plugins of this service. Yoga's own masking and CORS are off.
 */
export function createGraphqlRuntime(schema: GraphQLSchema, deps: GraphqlDeps): GraphqlRuntime {
  const { services, log, introspection, production, observer, uploadLimits = UPLOAD_LIMITS } = deps;
  const mask = new ErrorMask(log);
  const sse = new SseStreams();
  const audits = new OperationAudits(schema);
  const persisted = new PersistedOperations(deps.persistedMode, deps.persistedDocuments);
  const yoga = createYoga<GraphqlHttpRequest>({
    schema,
    plugins: [
      useEngine(createEngine({ introspection, hideSuggestions: production || !introspection, observer })),
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
    graphiql: deps.graphiql && GRAPHIQL_OPTIONS,
    renderGraphiQL: renderGraphiql,
    landingPage: false,
    cors: false,
    logging: false,
    multipart: false,
    maxRequestBodySize: false,
  });
  const sockets = new GraphqlSockets({
    protocol: socketProtocol({ yoga, mask, persisted, judge: deps.judge }),
    recordOperation: (record) => deps.recordOperation({ ...record, audited: audits.ofSocket(record) }),
    log,
  });
  return {
    async answer(exchange, bearer) {
      const { req, res } = exchange;
      audits.begin(exchange);
      const maxBytes = exchange.found.endpoint?.max_body_bytes ?? MEBIBYTE;
      const request = await readRequest(exchange, maxBytes, uploadLimits);
      const arrival = { exchange, bearer, isLater: false, ...request };
      try {
        const answer = await yoga.handleNodeRequestAndResponse(req, res, arrival);
        if (!sse.run(answer)) await sendResponse(answer, res);
      } catch (error) {
        // Yoga rejects when the client has disconnected, and then nobody is left to receive the error.
        if (!res.destroyed) throw error;
      }
    },
    async showPage({ req, res }) {
      const page = await yoga.handleNodeRequestAndResponse(req, res);
      for (const [name, value] of Object.entries(GRAPHIQL_HEADERS)) page.headers.set(name, value);
      await sendResponse(page, res);
    },
    accept: (exchange) => sockets.accept(exchange),
    async stop() {
      sse.stop();
      await sockets.stop();
      // Stopped after the sockets, so that their clients do not see their subscriptions fail.
      services.migrationProgress.stop();
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
  passGuards,
  services,
}: GraphqlDeps): Plugin<OperationRequest & Partial<GraphqlContext>> {
  const begun = new WeakSet<Exchange>();

  async function judge({ bearer, exchange, batch }: OperationRequest): Promise<void> {
    if (!(await recheck(bearer, exchange))) throw new TokenEndedError();
    if (!batch || begun.has(exchange)) return passGuards(bearer, exchange);
    begun.add(exchange);
    if (exchange.found.limitRefusal) throw exchange.found.limitRefusal;
  }

  return {
    async onContextBuilding({ context, extendContext }) {
      if (context.isLater) await judge(context);
      const { bearer, exchange } = context;
      const lastEventId = exchange.req.headers['last-event-id'];
      const operation: GraphqlContext = {
        principal: sharedPrincipalOf(bearer),
        caller: {
          principal: bearer,
          correlationId: exchange.correlationId,
          traceparent: exchange.span?.traceparent,
          lastEventId: typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : undefined,
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
