import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { Caller, ClientRecord, Principal, SignedToken } from '../../access/identity/callers.ts';
import type { ClientGuards, GuardedRequest } from '../../access/limits/client-guards.ts';
import type { maskHeaders } from '../../audit/mask.ts';
import type { SecretNames } from '../../audit/masked-names.ts';
import type { UserNotes } from '../../audit/noted-users.ts';
import { GatheredBytes } from '../../lib/gathered-bytes.ts';
import { isJsonType, type KnownMembers, readInput } from '../../lib/json.ts';
import type { Span } from '../../lib/tracing.ts';
import { invalidRequest, payloadTooLarge, type Refusal, tooLong } from '../../platform/errors.ts';
import type { HeldMemory } from '../../platform/held-memory.ts';
import type { Endpoint } from '../endpoints/gateway-config.ts';
import type { Upstream } from '../endpoints/upstream.ts';
import { Capture } from './capture.ts';
import type { ErrorEnvelope } from './refusals.ts';

/** A WebSocket upgrade that is neither accepted nor refused yet: its socket, and the bytes received after its head. */
interface Upgrade {
  socket: Duplex;
  head: Buffer;
}

/** A request target, split and normalised once, so that the path that is authorised is also the path that is served. */
export interface NormalTarget {
  path: string;
  /** The query without the question mark; empty when there is none. */
  query: string;
  /** Host and port, if the target has the absolute form. */
  host?: string;
}

/** The head of a request as an audit record shows it; the same for all operations of the request. */
export interface RecordedHead {
  path: string;
  query: string | null;
  headers: ReturnType<typeof maskHeaders>;
}

/** Instructions for recording a body; without any, the captured bytes are recorded. */
export interface AuditedBody {
  /** Masked text to record instead of the captured bytes; null to record no more than their length. */
  text?: string | null;
  /** The length to record, in bytes, if it differs from the captured bytes. */
  bytes?: number | undefined;
  /** The names of members to mask in addition to those that are secrets by their name. */
  maskedNames?: ReadonlySet<string>;
}

/** One operation of a request; each has its own audit record. */
export interface AuditedOperation {
  request: AuditedBody;
  response: AuditedBody;
  /** The masked query string. Without it, the operation in the query of a GraphQL request is masked completely. */
  query?: string;
  /** The schema names of the operation's root fields; without them, the record names the endpoint. */
  name?: string;
  /** The users that the operation has noted; without them, the users of the whole request are recorded. */
  notes?: UserNotes;
}

/** What stages of the chain, and handlers that authenticate callers themselves, have found out about a request. */
export class RequestState {
  endpoint: Endpoint | undefined;
  /** The name of the service that handles the request; undefined for routes of the gateway itself, such as health. */
  service: string | undefined;
  /** The upstream of that service; undefined when the service is local. */
  upstream: Upstream | undefined;
  /** Whether the client guards run elsewhere: in the upstream, or in a gateway in front of this one. */
  isGuardedElsewhere = false;
  token: SignedToken | undefined;
  /** The principal of the access token; undefined without one. */
  principal: Principal | undefined;
  /** Checks that the caller's access has not ended meanwhile; undefined without a caller. @throws Refusal if it has. */
  recheck: ((exchange: Exchange) => Promise<unknown>) | undefined;
  /**
   * The client of a request without an access token, who has signed in through it, and whether the audit record has
   * `is_api`.
   */
  client: { nodeId: string; clientId: string; subject?: string | undefined; isApi: boolean } | undefined;
  /** The 429 of a client's rate or quota that is left to the handler, for routes with the flag `batch`. */
  limitRefusal: Refusal | undefined;

  /** The caller's tenant; undefined until it is known. */
  get nodeId(): string | undefined {
    return this.principal?.nodeId ?? this.client?.nodeId;
  }
}

/** What is collected about a request for its audit records. */
interface AuditNotes extends UserNotes {
  readonly capture: Capture;
  /** The masked head, computed for the first of the records. */
  head: RecordedHead | undefined;
  /** Returns the operations of a request that has several, masked by `secrets`; called when it ends. */
  operations: ((secrets: SecretNames) => readonly AuditedOperation[]) | undefined;
  /** The reason of a refusal; undefined if the response says it all. */
  reason: string | undefined;
  /** Whom a refused request named in vain, and until when wrong passwords have locked them. */
  named: Pick<Refusal['details'], 'subject' | 'lockedUntilMs'> | undefined;
  /** Whether a handler has begun to read the body; otherwise the body is not recorded. */
  isBodyRead: boolean;
  /** Whether a handler has parsed the whole body as JSON in UTF-8. */
  isBodyJson: boolean;
}

/**
 * A request and its response on their way through the chain, with the results of the stages and the facts to record of
 * them.
 */
export class Exchange {
  // Facts about the message and its connection, set before the chain decides on the request.
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly upgrade: Upgrade | undefined;
  /** The address of the peer, which may be a proxy. */
  remoteAddress = '';
  /** The client's address, or the peer's if the client's is unknown. */
  realIp = '';
  /** The client's address; undefined when a trusted proxy has not named one. */
  clientAddress: string | undefined;
  /** Whether the peer is a trusted proxy. */
  isPeerTrusted = false;
  /** When the chain began: `startedAtMs` in ms since 1970, `startedTick` in ms of the monotonic clock. */
  startedAtMs = 0;
  startedTick = 0;
  correlationId = '';
  /** The trace span of the request; undefined when the request is not traced. */
  span: Span | undefined;
  /** The normalised request target; undefined when it is ambiguous. */
  target: NormalTarget | undefined;
  /** The route of this process for method and target, whether or not an endpoint lets the request reach it. */
  route: ServedRoute | undefined;
  /** Whether the chain has begun with this request, because those before it on its connection are answered. */
  hasBegun = false;
  /**
   * Whether the bytes after the head are not valid HTTP, or do not come while the process stops. The request is then
   * refused, even while a handler works on it.
   */
  isBroken = false;
  /** What the request holds; undefined outside the gateway, where nothing is charged. */
  held: HeldMemory | undefined;
  /** Whether the request began while no audit record could be stored: it is refused, or a health check, and only logged. */
  isUnrecordable = false;

  /** The client guards; undefined until the chain hands the request over to what serves it. */
  guards: Pick<ClientGuards, 'check'> | undefined;
  /** What the guards have looked at to let the caller in; undefined if they have not, or run elsewhere. */
  guarded: GuardedRequest | undefined;
  readonly state = new RequestState();
  readonly audit: AuditNotes;

  constructor(req: IncomingMessage, res: ServerResponse, upgrade?: Upgrade) {
    this.req = req;
    this.res = res;
    this.upgrade = upgrade;
    this.audit = {
      capture: new Capture(req, res),
      head: undefined,
      notedUsers: undefined,
      operations: undefined,
      reason: undefined,
      named: undefined,
      isBodyRead: false,
      isBodyJson: false,
    };
  }

  /**
   * Lets an identified caller in, if the guards of its client do, and sets the limit headers of the response. Called for
   * the request, for each operation of a WebSocket, and for each of a batch after the first. With `isCounted` false the
   * request is not counted, because its operations will be.
   * @throws Refusal `mtls_required`, `ip_not_allowed`, `rate_limit_exceeded` or `monthly_limit_exceeded`.
   */
  async admit(caller: ClientRecord | Principal, isCounted?: boolean): Promise<void> {
    if (!this.guards) throw new Error('a caller was to be admitted before the end of the gateway chain');
    const fingerprint = this.req.headers['ssl-client-fingerprint']?.toString();
    this.guarded = { fingerprint, address: this.clientAddress };
    const { headers, refusal } = await this.guards.check(caller, this.guarded, isCounted);
    // The response of a WebSocket has been sent.
    if (!this.upgrade)
      for (let at = 1; at < headers.length; at += 2) this.res.setHeader(headers[at - 1] ?? '', headers[at] ?? '');
    if (refusal) throw refusal;
  }

  /** Whether the response has begun, so that it can be cut off but not replaced. */
  get isAnswered(): boolean {
    return this.res.headersSent || this.audit.capture.isEnded;
  }
}

/** The property that holds the exchange; a weak map with every request would be costly for the garbage collector. */
const EXCHANGE: unique symbol = Symbol('exchange');

declare module 'node:http' {
  interface IncomingMessage {
    [EXCHANGE]?: Exchange;
  }
}

/** Attaches an exchange to its request, for the handlers after the chain. */
export function attachExchange(exchange: Exchange): void {
  exchange.req[EXCHANGE] = exchange;
}

/**
 * Returns the exchange of a request that came through the gateway.
 * @throws Error when the request has none.
 */
export function exchangeOf(req: IncomingMessage): Exchange {
  const exchange = req[EXCHANGE];
  if (!exchange) throw new Error('a request reached a handler without passing the gateway chain');
  return exchange;
}

/**
 * Returns the caller of a request to a protected endpoint, in the form that domain functions take.
 * @throws Error when the request has no principal.
 */
export function callerOf(req: IncomingMessage): Caller {
  const { state, correlationId, span } = exchangeOf(req);
  if (!state.principal) throw new Error('a protected handler ran without a principal');
  const { nodeId, subject, clientId, permissions } = state.principal;
  return { nodeId, subject, clientId, permissions, correlationId, traceparent: span?.traceparent };
}

/**
 * What serves a path in this process, and how the gateway treats requests to it where that follows from the handlers
 * and not from `gateway.yaml`. An absent flag is false.
 */
export interface ServedRoute {
  readonly methods: readonly string[];
  /** The path pattern, written as in `gateway.yaml`. */
  readonly path: string;
  /** Runs the handlers, for a request and a response of Express. */
  readonly run: RequestHandler;
  /** Returns the body for an error of a handler; by default the error envelope. */
  readonly errorBody?: (error: Refusal, req: IncomingMessage) => ErrorEnvelope;
  /** Whether the route answers even when no audit record can be stored; all others answer 503 then. */
  readonly servesWhenAuditIsFull?: boolean;
  /**
   * Whether a 429 of the client's rate or quota is left to the handler, as `limitRefusal`. Only the body of a POST
   * shows whether it is one operation, refused as a whole, or a batch, whose operations are counted one by one.
   */
  readonly batch?: boolean;
  /**
   * Whether `errors` is left out of the body of every error response, because the contract lists its members
   * exactly (docs/contract.md, D2-13).
   */
  readonly oauthErrors?: boolean;
  /** The longest body that `readBody` reads, in bytes, instead of the operator's setting; a longer one is a 400. */
  readonly bodyLimit?: number;
}

/** The longest time to receive a body, in ms; the same as Node's default for a whole request. */
const MAX_MS = 300_000;
/** How long, in ms, a body may take until its end without another check of the caller. */
const RECHECK_MS = 500;
/** What a byte of a body takes: it is in the body, and in the beginning that is captured for the audit record. */
export const BODY_WEIGHT = 2;

/**
 * Sends 100 Continue to a client that waits for it before it sends its body (RFC 9110 section 10.1.1). HTTP/1.0 has no
 * interim responses: its client would take it for the final response.
 */
export function sendContinue({ req, res }: Exchange): void {
  if (req.httpVersion !== '1.0' && /^100-continue$/i.test(req.headers.expect ?? '')) res.writeContinue();
}

/** Checks whether a Content-Encoding leaves the bytes of a body as they are. */
export function isIdentity(encoding = ''): boolean {
  return /^(?:identity|[\s,])*$/i.test(encoding);
}

/**
 * Reads the body of a request, after sending 100 Continue if the client waits for it. Rejects with a 400 when the body
 * has a content encoding or takes more than five minutes, with `tooLarge` when it is longer than `maxBytes`, with a
 * 503 when requests hold too much memory and this one has to make room, and with a 401 when the caller's access has ended
 * meanwhile. Never settles when the client leaves.
 */
export function readBytes(exchange: Exchange, maxBytes: number, tooLarge = payloadTooLarge): Promise<Buffer> {
  const { req, state, held } = exchange;
  if (!isIdentity(req.headers['content-encoding'])) {
    return Promise.reject(invalidRequest([{ path: 'Content-Encoding', message: 'must be identity' }]));
  }
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge(maxBytes));
  exchange.audit.isBodyRead = true;
  sendContinue(exchange);
  const fromTick = performance.now();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const body = new GatheredBytes();
  const giveUp = held?.giveUp;
  if (held) held.giveUp = stop;
  function onData(chunk: Buffer): void {
    body.push(chunk);
    held?.charge(BODY_WEIGHT * chunk.length);
    if (body.length > maxBytes) stop(tooLarge(maxBytes));
  }
  function stop(refusal: Refusal): void {
    req.off('data', onData).off('end', finish).off('close', leave).pause();
    leave();
    reject(refusal);
  }
  // Once the client has left, the promise never settles, and a timer would only hold the body in memory.
  const late = req.destroyed
    ? undefined
    : setTimeout(() => stop(invalidRequest([{ path: '', message: 'must arrive within five minutes' }])), MAX_MS);
  function leave(): void {
    clearTimeout(late);
    if (held) held.giveUp = giveUp;
  }
  function finish(): void {
    leave();
    // A request that begins before the caller's access ends must not act after it.
    const isLate = performance.now() - fromTick > RECHECK_MS;
    resolve(isLate && state.recheck ? state.recheck(exchange).then(() => body.bytes) : body.bytes);
  }
  req.on('data', onData).once('end', finish).once('close', leave);
  return promise;
}

/**
 * Reads the body of a request into `req.body` as bytes. A body over the endpoint's limit is a 413, over the route's own
 * `bodyLimit` a 400.
 */
export async function readBody(req: Request, _res: Response, next: NextFunction): Promise<void> {
  const exchange = exchangeOf(req);
  const { max_body_bytes = 0 } = exchange.state.endpoint ?? {};
  const limit = exchange.route?.bodyLimit;
  req.body = await (limit === undefined
    ? readBytes(exchange, max_body_bytes)
    : readBytes(exchange, limit, (maxBytes) => invalidRequest([tooLong(maxBytes)])));
  next();
}

/**
 * Parses the JSON body of a request that `readBody` has read.
 * @throws Refusal 400 for another content type, malformed UTF-8 or JSON, or JSON beyond the limits of `parseJson`.
 */
export async function jsonBody(req: Request): Promise<unknown> {
  return jsonOf(exchangeOf(req), bytesOf(req));
}

/**
 * Parses the bytes of a request's body as JSON.
 * @throws Refusal 400 as `jsonBody` does, and for a known member that is repeated.
 */
export async function jsonOf(exchange: Exchange, bytes: Buffer, known?: KnownMembers): Promise<unknown> {
  if (!isJsonType(exchange.req.headers['content-type'])) {
    throw invalidRequest([{ path: 'Content-Type', message: 'must be application/json' }]);
  }
  const rejection = ({ message }: Error) => invalidRequest([{ path: '', message }]);
  const value = await readInput(bytes, rejection, exchange.held, known);
  exchange.audit.isBodyJson = true;
  return value;
}

/** Returns the body of a request that `readBody` has read; an empty buffer when it had none. */
export function bytesOf(req: Request): Buffer {
  return Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
}
