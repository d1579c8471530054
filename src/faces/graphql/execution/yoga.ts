import type { ServerResponse } from 'node:http';
import { useEngine } from '@envelop/core';
import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Principal } from '../../../access/identity/principal.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { GraphqlServices } from '../kit/graphql-context.ts';
import type { OperationAudits } from './audit-masking.ts';
import { MAX_BATCH, useLimits } from './document-limits.ts';
import { createEngine } from './engine.ts';
import { type ErrorMask, useMasking } from './error-masking.ts';
import { type GraphqlHttpRequest, useJsonBody, useQueryParameters } from './http-requests.ts';
import { useHttpResults } from './http-results.ts';
import { type OperationGuard, useAuthentication, useClientGuards, useOperationContext } from './operation-context.ts';
import type { OperationObserver } from './operation-observer.ts';
import { DocumentCache, type PersistedOperations, usePersistedOperations } from './persisted-operations.ts';
import type { SseStreams } from './sse.ts';
import { useUploads } from './uploads.ts';

/** Sends a response of Yoga that is no stream; sends nothing if the client has gone. */
export async function sendResponse(answer: Response, res: ServerResponse): Promise<void> {
  const body = await answer.text();
  if (res.destroyed || res.writableEnded) return;
  res.setHeaders(answer.headers);
  res.writeHead(answer.status);
  res.end(body);
}

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

/** Creates Yoga with the plugins of this service; its own GraphiQL, masking and CORS are off. */
export function createYogaServer(parts: YogaParts) {
  const { schema, services, mask, sse, audits, persisted, recheck, passGuards, observer } = parts;
  const { maxCost, introspection, production } = parts;
  return createYoga<GraphqlHttpRequest>({
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
