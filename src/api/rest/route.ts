import { parse } from 'node:querystring';
import express, { type Request, type RequestHandler, type Response } from 'express';
import type { LocalServices } from '../../gateway/chain.ts';
import {
  bytesOf,
  callerOf,
  type Exchange,
  exchangeOf,
  jsonBody,
  type ServedRoute,
} from '../../gateway/exchange/exchange.ts';
import { errorEnvelope, refusalHeaders, statusOf } from '../../gateway/exchange/refusals.ts';
import { answerPreflight } from '../../gateway/exchange/request-head.ts';
import { refuse, sendJson, sendPieces } from '../../gateway/exchange/responses.ts';
import { PathTable, parametersOf } from '../../gateway/routing.ts';
import {
  IDEMPOTENCY_KEY,
  type IdempotentResponses,
  type KeyedRequest,
  type StoredResponse,
} from '../../idempotency/idempotent-responses.ts';
import type { Log } from '../../lib/log.ts';
import { isShort, jsonSlices, runCooperatively } from '../../lib/yielding.ts';
import { invalidRequest, serviceUnavailable } from '../../platform/errors.ts';
import type { DescribedRoute } from '../openapi/operation.ts';

/**
 * The whole declaration of a method and path: its Express handlers, its OpenAPI operation and how the gateway treats its
 * requests. No other file of `src` contains the path. `Services` is the type of the services that its handlers call.
 */
export interface Route<Services> extends DescribedRoute, Omit<ServedRoute, 'methods' | 'run'> {
  /** Returns the handlers that Express runs in order. */
  readonly handlers: (services: Services) => readonly RequestHandler[];
}

/** Declares a route; its services have the type of its handlers' argument. */
export function route<Services>(declared: Route<Services>): Route<Services> {
  return declared;
}

/**
 * Makes the Express application that serves the routes to requests that the gateway has let through. The gateway has
 * found the route of a request; Express runs its handlers. Its settings turn off what the contract does not have: the
 * `ETag` of every response, `X-Powered-By` and 304. `req.query` has every parameter. A request without a route gets 503.
 */
export function restApplication<Services>(
  routes: readonly Route<Services>[],
  services: Services,
  log: Log,
): LocalServices {
  const app = express().disable('etag').disable('x-powered-by');
  app.set('query parser', (query: string) => parse(query, '&', '=', { maxKeys: 0 }));
  // No route but those that do it themselves answers 304.
  Object.defineProperty(app.request, 'fresh', { value: false });
  app.use((req, res, next) => exchangeOf(req).route?.run(req, res, next));
  return {
    routes: new PathTable(routes.map((declared) => served(declared, services))),
    handle(exchange) {
      const { req, res, route: { errorBody } = {} } = exchange;
      // A router reports an error one tick later: a body that arrived with its headers has been read by then, and the
      // connection can be kept.
      const fail = (error?: unknown) =>
        refuse(exchange, error, log, errorBody && ((refusal) => errorBody(refusal, req)));
      if (req.method === 'OPTIONS') answerPreflight(exchange);
      else if (exchange.route) app(req as express.Request, res as express.Response, fail);
      else answerUnserved(exchange);
    },
  };
}

/** Returns a route as the gateway finds it. One of GET serves HEAD, for which Node sends no body. */
function served<Services>({ handlers, method, ...treatment }: Route<Services>, services: Services): ServedRoute {
  const router = express.Router({ mergeParams: true }).use(...handlers(services));
  return {
    ...treatment,
    methods: method === 'GET' ? ['GET', 'HEAD'] : [method],
    run(req, res, next) {
      req.params = parametersOf(treatment.path, exchangeOf(req).target?.path ?? '');
      router(req, res, next);
    },
  };
}

/** Answers 503, even if the endpoint's statuses are closed: only the operator can correct that it has no route. */
function answerUnserved({ res }: Exchange): void {
  const refusal = serviceUnavailable();
  for (const [name, value] of Object.entries(refusalHeaders(refusal))) res.setHeader(name, value);
  sendJson(res, statusOf(refusal), errorEnvelope(refusal));
}

/**
 * Answers a request whose body `readBody` has read. For a day a repetition with the same `Idempotency-Key` gets the
 * same status, body and headers. A refusal leaves the key free. An invalid body gets its 400 even if the key was used
 * for another request.
 */
export async function respondIdempotently<Input>(
  req: Request,
  res: Response,
  {
    answers,
    parse,
    work,
    wrapTransaction = (run) => run(),
  }: {
    answers: IdempotentResponses;
    /**
     * Parses the body.
     * @throws Refusal 400 if the body is invalid.
     */
    parse(body: unknown): Input;
    /** Does the work of the request, inside a transaction if the request has an `Idempotency-Key`. */
    work(input: Input): Promise<StoredResponse>;
    /** Wraps the work, including its transaction, for instance in a mutex. */
    wrapTransaction?(work: () => Promise<StoredResponse>): Promise<StoredResponse>;
  },
): Promise<void> {
  const keyed = keyedRequest(req);
  const requestBody = await jsonBody(req);
  const input = await runCooperatively(() => parse(requestBody), exchangeOf(req).held, { isBegun: true });
  const run = () => work(input);
  const { status, headers, body } = await (keyed ? answers.respond(keyed, run, wrapTransaction) : wrapTransaction(run));
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  if (body === null) sendEmpty(res, status);
  else res.status(status).type('json').send(body);
}

/** Sends a page as JSON: a long one in pieces, without the tag that would need all of it at once. */
export async function sendPage(res: Response, page: object): Promise<void> {
  if (isShort(page)) res.json(page);
  else await sendPieces(res.type('json'), jsonSlices(page));
}

/** Sends a status without a body. Its length is said, since HTTP/1.0 would end the response with its connection. */
export function sendEmpty(res: Response, status: number): void {
  if (status !== 204) res.set('Content-Length', '0');
  res.status(status).end();
}

/**
 * Returns the request that an `Idempotency-Key` stands for; undefined without the header.
 * @throws Refusal 400 for a malformed key, or for several.
 */
function keyedRequest(req: Request): KeyedRequest | undefined {
  const headerValues = req.headersDistinct['idempotency-key'];
  if (!headerValues) return undefined;
  const [key = ''] = headerValues;
  if (headerValues.length > 1 || !IDEMPOTENCY_KEY.test(key)) {
    throw invalidRequest([{ path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters, once' }]);
  }
  const { nodeId, subject, clientId } = callerOf(req);
  return {
    ...{ nodeId, subject, clientId, method: req.method, key, bytes: bytesOf(req) },
    path: exchangeOf(req).target?.path ?? req.url,
  };
}
