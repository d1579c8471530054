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
import { ErrorMask, useMasking } from './error-masking.ts';
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

/** What GraphQL stands on. */
export interface GraphqlDeps {
  services: GraphqlServices;
  /**
   * Whoever an access token speaks for, judged in full; undefined where it is missing or does not hold.
   * @throws AppError 403 where a guard of its client refuses.
   */
  judge: (token: string | undefined, exchange: Exchange) => Promise<Principal | undefined>;
  /** Whether a token that was good is still good: not expired, not revoked, on a socket of an accepted class. */
  recheck: (principal: Principal, exchange: Exchange) => Promise<boolean>;
  /**
   * Counts an operation of a socket, or one more of a batch.
   * @throws AppError 403 or 429 where a guard of its client refuses, or a permission of the endpoint lacks on a socket.
   */
  passGuards: (principal: Principal, exchange: Exchange) => void | Promise<void>;
  /** Takes the audit record of an operation of a socket. */
  recordOperation: (record: OperationRecord) => void;
  /** What measures and traces operations. */
  observer?: OperationObserver | undefined;
  log: Log;
  /** The most objects that an operation may ask for. */
  maxCost: number;
  /** Of requests with a file: by default 1 GiB, and a minute without a byte. */
  uploadLimits?: UploadLimits | undefined;
  introspection: boolean;
  persistedMode: PersistedMode;
  /** Those in force. */
  persistedDocuments: () => PersistedDocuments;
  /** Errors then suggest no names, and there is no GraphiQL. */
  production: boolean;
  graphiql: boolean;
}

/** An operation as it comes in, over HTTP or a socket. */
export interface OperationRequest {
  exchange: Exchange;
  /** Who sent it: an operation's own context tells less of them. */
  bearer: Principal;
  /** Whether time has passed since the gateway judged the token: on a socket, and in a batch. */
  isLater: boolean;
  /** Those that it came with in one request. */
  batch?: GraphqlBatch;
}

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

/** Makes what runs operations on a schema: Yoga with the plugins of this service; its own GraphiQL, masking and CORS are off. */
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
      useMasking(mask),
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
        // Yoga gives up what nobody waits for any more.
        if (!res.destroyed) throw error;
      }
    },
    accept: (exchange) => sockets.accept(exchange),
    async stop() {
      sse.stop();
      await sockets.stop();
      // Behind the sockets, whose clients would be told that their subscriptions have failed.
      services.migrationProgress.stop();
    },
  };
}

/**
 * Envelop plugin: an operation runs only while its token is good, and gets the context that fields resolve in. One of a
 * socket passes the guards of its client, and so does each of a batch but the first that runs, which the request itself
 * has passed them for, or has been refused for by a limit.
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

/** Returns the part of a principal that the result of an event may depend on, without its other members. */
export function sharedPrincipalOf({ nodeId, tokenClass, tokenUse, permissions }: Principal): SharedPrincipal {
  return { nodeId, tokenClass, tokenUse, permissions };
}
