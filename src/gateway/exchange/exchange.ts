import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Caller, Principal, SignedToken } from '../../access/identity/principal.ts';
import type { JsonRule } from '../../audit/mask-json.ts';
import type { Span } from '../../lib/tracing.ts';
import type { AppError } from '../../platform/errors.ts';
import type { Upstream } from '../remote/upstream.ts';
import type { EndpointFlags } from '../table/endpoint-flags.ts';
import type { Endpoint } from '../table/gateway-config.ts';
import type { RecordedHead } from './audit.ts';
import { Capture } from './capture.ts';
import type { NormalTarget } from './request-head.ts';

/** The raw socket of a WebSocket upgrade, before it is accepted or refused. */
interface Upgrade {
  socket: Duplex;
  head: Buffer;
}

/** What a record is told of a body: nothing where the captured bytes speak for themselves. */
export interface AuditedBody {
  /** JSON, in the place of what was captured. */
  text?: string;
  /** Whether only a part of the request's body is it. */
  isPart?: boolean;
  /** What is hidden beside the values of secret keys. */
  rule?: JsonRule | undefined;
}

/** An operation of a request: each has a record of its own. */
export interface AuditedOperation {
  request: AuditedBody;
  response: AuditedBody;
  /** Masks the query string; without it the query of a GraphQL request shows nothing of an operation. */
  maskQuery?: ((query: string) => string) | undefined;
}

/** What the stages of the chain, and handlers that authenticate by themselves, have found out about a request. */
export class Findings {
  endpoint: Endpoint | undefined;
  /** The service that answers; undefined for routes of the gateway itself, such as health. */
  service: string | undefined;
  /** Where that service is; undefined in this process. */
  upstream: Upstream | undefined;
  /** Whether the service runs the client guards, or a gateway in front has run them. */
  isGuardedElsewhere = false;
  token: SignedToken | undefined;
  /** Whoever the access token speaks for. */
  principal: Principal | undefined;
  /** Who has authenticated without an access token: the tenant and the kind of the audit record. */
  client: { nodeId: string; isApi: boolean } | undefined;
  /** The 429 of a client's limit that is left to the handler of an endpoint with the flag `batch`. */
  limitRefusal: AppError | undefined;

  /** The caller's tenant, once it is known. */
  get nodeId(): string | undefined {
    return this.principal?.nodeId ?? this.client?.nodeId;
  }
}

/** What is kept of a request for its audit records. */
interface AuditNotes {
  readonly capture: Capture;
  /** The masked head, made with the first of the records. */
  head: RecordedHead | undefined;
  /** Returns the operations of a request that has several, as it ends. */
  operations: (() => readonly AuditedOperation[]) | undefined;
  /** Whether a handler has begun to read the body: that of a refused request is not recorded. */
  isBodyRead: boolean;
  /** Whether a handler has parsed the whole body as JSON in UTF-8. */
  isBodyJson: boolean;
}

/** A request and its response on their way through the chain: what it is, what was found out, what the audit keeps. */
export class Exchange {
  // What it is, whoever may send it: its messages, its connection, its times. Settled before the chain judges.
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly upgrade: Upgrade | undefined;
  /** The address of the peer, which may be a proxy. */
  remoteAddress = '';
  /** The client's address, or the peer's where the client's is not known. */
  realIp = '';
  /** The client's address; undefined where a trusted proxy has named none. */
  clientAddress: string | undefined;
  /** Whether the peer is a trusted proxy. */
  isPeerTrusted = false;
  /** When the chain began: milliseconds since the epoch, and of the monotonic clock. */
  startedAtMs = 0;
  startedTick = 0;
  correlationId = '';
  /** Undefined where the request is not traced. */
  span: Span | undefined;
  /** What the routes say of the path as it was sent: its endpoint, once that is found, knows better. */
  pathFlags: EndpointFlags | undefined;
  /** The normalised request target, once it has matched an endpoint. */
  target: NormalTarget | undefined;
  /** Whether the requests before it on its connection are answered. */
  hasBegun = false;
  /** Whether the bytes behind its head are no HTTP: it is refused, whatever still works on it. */
  isBroken = false;
  /** Whether no audit record of it can be stored. */
  isUnrecordable = false;

  readonly found = new Findings();
  readonly audit: AuditNotes;

  constructor(req: IncomingMessage, res: ServerResponse, upgrade?: Upgrade) {
    this.req = req;
    this.res = res;
    this.upgrade = upgrade;
    const capture = new Capture(req, res);
    this.audit = { capture, head: undefined, operations: undefined, isBodyRead: false, isBodyJson: false };
  }

  /** Whether the response has begun: it can be cut, and no longer be replaced. */
  get isAnswered(): boolean {
    return this.res.headersSent || this.audit.capture.isEnded;
  }
}

/** A property, since a weak map of every request makes the garbage collector work. */
const EXCHANGE: unique symbol = Symbol('exchange');

declare module 'node:http' {
  interface IncomingMessage {
    [EXCHANGE]?: Exchange;
  }
}

/** Ties an exchange to its request, for the handlers behind the gateway. */
export function attachExchange(exchange: Exchange): void {
  exchange.req[EXCHANGE] = exchange;
}

/** The exchange of a request that came through the gateway: there is no other way in. */
export function exchangeOf(req: IncomingMessage): Exchange {
  const exchange = req[EXCHANGE];
  if (!exchange) throw new Error('a request reached a handler around the gateway');
  return exchange;
}

/** Returns the caller of a request to a protected endpoint, as domain functions take it. */
export function callerOf(req: IncomingMessage): Caller {
  const { found, correlationId, span } = exchangeOf(req);
  if (!found.principal) throw new Error('a protected handler ran without a principal');
  const { nodeId, subject, clientId, permissions } = found.principal;
  return { nodeId, subject, clientId, permissions, correlationId, traceparent: span?.traceparent };
}
