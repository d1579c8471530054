import { bearerOf, missingPermissions, type Principal, type SignedToken } from '../access/identity/callers.ts';
import type { ClientGuards } from '../access/limits/client-guards.ts';
import type { TokenAuthenticator } from '../access/tokens/token-authenticator.ts';
import type { TokenClass } from '../platform/config/secrets.ts';
import {
  auditSpoolFull,
  forbidden,
  invalidRequest,
  noToken,
  notFound,
  Refusal,
  serviceUnavailable,
} from '../platform/errors.ts';
import type { Endpoint } from './endpoints/gateway-config.ts';
import type { Upstream } from './endpoints/upstream.ts';
import { attachExchange, type Exchange, type RequestState, type ServedRoute } from './exchange/exchange.ts';
import { statusOf } from './exchange/refusals.ts';
import { correlation, headFault, normalTarget } from './exchange/request-head.ts';
import { NOT_HTTP } from './exchange/unparsed.ts';
import type { PathTable, Services } from './routing.ts';

/** One stage of the chain: adds to the exchange, or refuses the request by throwing an `Refusal`. */
export type Stage = (exchange: Exchange) => void | Promise<void>;

/** Handles requests to the services of this process, after they have passed the chain. */
export interface LocalServices {
  readonly routes: PathTable<ServedRoute>;
  handle(exchange: Exchange): void;
}

/** The dependencies of a gateway chain, for one endpoint table. */
export interface ChainDependencies {
  table: PathTable<Endpoint>;
  /** Other paths by which endpoints are reached, each with the path in the table. */
  aliases: ReadonlyMap<string, string>;
  services: Services;
  tokens: Pick<TokenAuthenticator, 'checkSignature' | 'principalOf' | 'checkClaims' | 'checkSession' | 'recheck'>;
  guards: Pick<ClientGuards, 'check'>;
  local: LocalServices;
  remote: { forward(exchange: Exchange, upstream: Upstream): void };
  /** Called when a request ends. The end of its response is sent only after `onPersisted` has been called. */
  onEnd(exchange: Exchange, aborted: boolean, onPersisted: () => void): void;
  nowMs(): number;
}

/**
 * Creates the gateway chain, in the order of clause 1-01 (docs/contract.md); the permission stage follows revocation.
 */
export function gatewayChain({ tokens, services, onEnd, nowMs, ...parts }: ChainDependencies): readonly Stage[] {
  async function recheck(exchange: Exchange): Promise<void> {
    const { guarded, state } = exchange;
    if (state.principal) await tokens.recheck(state.principal);
    if (state.principal && guarded) await exchange.admit(state.principal, false);
  }

  async function findToken(state: RequestState, token: string, classes: readonly TokenClass[]): Promise<void> {
    state.token = await tokens.checkSignature(token, classes);
  }

  async function findPrincipal({ state, held }: Exchange, token: SignedToken): Promise<void> {
    held?.moveTo(tokens.principalOf(token).nodeId);
    state.principal = await tokens.checkClaims(token);
  }

  async function guard(exchange: Exchange, principal: Principal): Promise<void> {
    const { req, state, route } = exchange;
    try {
      await exchange.admit(principal);
    } catch (error) {
      // A batch of operations gets a 429 for each, from its handler.
      const mayBeBatch = !state.upstream && req.method === 'POST' && route?.batch === true;
      if (!mayBeBatch || !(error instanceof Refusal && statusOf(error) === 429)) throw error;
      state.limitRefusal = error;
    }
    if (!exchange.isAnswered) handOver(exchange, parts);
  }

  return [
    function clock(exchange) {
      exchange.startedAtMs = nowMs();
      exchange.startedTick = performance.now();
      // Before anything is refused, because the route says how a refusal is answered.
      findRoute(exchange, parts);
    },
    correlation,
    function capture(exchange) {
      exchange.audit.capture.install((aborted, onPersisted) => onEnd(exchange, aborted, onPersisted));
    },
    function target(request) {
      refuseBadHead(request);
      const name = targetServer(request);
      if (name !== undefined && !services.isKnown(name))
        throw notFound('X-Target-Server does not name a known service');
    },
    function endpoint(exchange) {
      matchEndpoint(exchange, parts, services);
    },
    function visibility({ req, state }) {
      if (state.endpoint?.visibility === 'protected' && req.headers.authorization === undefined) throw noToken();
    },
    function signature({ req, state }) {
      // A public endpoint ignores bearer tokens, even broken ones.
      const { visibility = 'public', tokens: classes = [] } = state.endpoint ?? {};
      const { authorization } = req.headers;
      if (visibility === 'public' || (visibility === 'optional' && authorization === undefined)) return undefined;
      return findToken(state, bearerOf(authorization), classes);
    },
    function claims(exchange) {
      const { token } = exchange.state;
      return token && findPrincipal(exchange, token);
    },
    function revocation({ state }) {
      if (!state.principal) return undefined;
      state.recheck = recheck;
      return tokens.checkSession(state.principal);
    },
    function permission({ state: { principal, endpoint } }) {
      const missing = principal && endpoint ? missingPermissions(principal, endpoint.permissions) : [];
      if (missing.length > 0) throw forbidden(missing);
    },
    function upstream({ state, isPeerTrusted }) {
      state.upstream = services.upstreamOf(state);
      state.isGuardedElsewhere = services.areGuardsElsewhere(state, isPeerTrusted);
    },
    function proxy(exchange) {
      exchange.guards = parts.guards;
      attachExchange(exchange);
      const { principal, isGuardedElsewhere } = exchange.state;
      if (principal && !isGuardedElsewhere) return guard(exchange, principal);
      handOver(exchange, parts);
      return undefined;
    },
  ];
}

/**
 * Refuses a head that two recipients could read differently. Its connection takes no further request.
 * @throws Refusal 400 for such a head.
 */
function refuseBadHead({ req, res, upgrade, isBroken }: Exchange): void {
  const fault = isBroken ? NOT_HTTP : headFault(req, upgrade !== undefined);
  if (!fault) return;
  res.shouldKeepAlive = false;
  throw invalidRequest([fault]);
}

/**
 * Returns the service that the caller names in `X-Target-Server`; undefined when none is named, and the gateway's
 * binding decides.
 */
function targetServer({ req }: Exchange): string | undefined {
  const header = req.headers['x-target-server'];
  const name = Array.isArray(header) ? header.join(',') : header;
  return name === '' ? undefined : name;
}

/** Normalises the target of a request, and finds the route of this process for it. */
function findRoute(exchange: Exchange, { local, aliases }: Pick<ChainDependencies, 'local' | 'aliases'>): void {
  const { method = '', url = '' } = exchange.req;
  const target = normalTarget(url);
  if (!target) return;
  target.path = aliases.get(target.path) ?? target.path;
  exchange.target = target;
  exchange.route = local.routes.match(method, target.path);
}

/**
 * Finds the endpoint and the service of a request. A request that cannot be recorded in the audit, or for which there is
 * no memory, is refused only here, because clients of endpoints with `statuses: closed` do not know 503.
 * @throws Refusal 404 when nothing matches, 503 when the request cannot be recorded or held.
 */
function matchEndpoint(exchange: Exchange, { table }: Pick<ChainDependencies, 'table'>, services: Services): void {
  const { req, state, held, isUnrecordable, target, route } = exchange;
  const unheld = held?.refusal === undefined ? undefined : serviceUnavailable();
  const refusal = isUnrecordable ? auditSpoolFull() : unheld;
  const endpoint = target && table.match(req.method ?? '', target.path);
  if (!target || !endpoint) throw refusal ?? notFound(target ? table.absenceOf(target.path) : 'the path is ambiguous');
  const service = services.serviceFor(endpoint, targetServer(exchange));
  if (service === undefined && endpoint.services.length > 0)
    throw notFound(`the endpoint belongs to ${endpoint.services.join(', ')}`);
  state.endpoint = endpoint;
  if (endpoint.doNotLog) exchange.audit.capture.request.drop();
  state.service = service;
  if (refusal && !route?.servesWhenAuditIsFull) throw refusal;
  // The host of an absolute target overrides the Host field (RFC 9112 section 3.2.2).
  if (target.host !== undefined) req.headers.host = target.host;
  req.url = target.query === '' ? target.path : `${target.path}?${target.query}`;
}

/** Passes a request to its service. */
function handOver(exchange: Exchange, { local, remote }: Pick<ChainDependencies, 'local' | 'remote'>): void {
  const { upstream } = exchange.state;
  if (upstream) remote.forward(exchange, upstream);
  else local.handle(exchange);
}
