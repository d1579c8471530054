import { useEngine } from '@envelop/core';
import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Exchange } from '../gateway/exchange.ts';
import type { Principal } from '../oauth/principal.ts';
import type { OperationAudits } from './audit-masking.ts';
import type { GraphqlServices } from './context.ts';
import { DocumentCache } from './document-cache.ts';
import { createEngine } from './engine.ts';
import { type HttpArrival, useJsonBody, useQueryParameters } from './http-requests.ts';
import { useHttpResults } from './http-results.ts';
import { MAX_BATCH, useLimits } from './limits.ts';
import { type ErrorMask, useMasking } from './masking.ts';
import { type OperationGuard, useAuthentication, useClientGuards, useOperationContext } from './operation-context.ts';
import type { OperationObserver } from './operation-observer.ts';
import { type PersistedOperations, usePersistedOperations } from './persisted-operations.ts';
import type { SseStreams } from './sse.ts';
import { useUploads } from './uploads.ts';

interface YogaParts {
  schema: GraphQLSchema;
  services: GraphqlServices;
  mask: ErrorMask;
  sse: SseStreams;
  audits: OperationAudits;
  persisted: PersistedOperations;
  recheck: (principal: Principal, exchange: Exchange) => Promise<boolean>;
  passGuards: OperationGuard;
  observer?: OperationObserver | undefined;
  maxCost: number;
  introspection: boolean;
  /** Errors do not suggest names then. */
  production: boolean;
}

/** Yoga with the plugins of this service: what is its own, GraphiQL and masking and CORS, is off. */
export function createYogaServer(parts: YogaParts) {
  const { schema, services, mask, sse, audits, persisted, recheck, passGuards, observer } = parts;
  const { maxCost, introspection, production } = parts;
  return createYoga<HttpArrival>({
    schema,
    plugins: [
      useEngine(createEngine({ introspection, hideSuggestions: production || !introspection, observer })),
      useQueryParameters(),
      useJsonBody(),
      useUploads(),
      usePersistedOperations(persisted),
      useHttpResults(mask, sse, audits),
      audits.plugin(),
      useLimits(maxCost),
      useAuthentication(recheck),
      useClientGuards(passGuards),
      useOperationContext(services),
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
}

/** What `createYogaServer` gives. */
export type YogaServer = ReturnType<typeof createYogaServer>;
