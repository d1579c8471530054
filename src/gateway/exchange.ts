import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { JsonRule } from '../audit/mask-json-rules.ts';
import type { AppError } from '../errors/app-error.ts';
import type { Span } from '../lib/tracing.ts';
import type { Principal } from '../oauth/principal.ts';
import type { SignedToken } from '../oauth/signed-token.ts';
import type { RecordedHead } from './audit-head.ts';
import { Capture } from './capture.ts';
import type { EndpointMatch } from './endpoint-table.ts';
import type { NormalTarget } from './normal-path.ts';
import type { Upstream } from './upstream/upstream.ts';

/** The raw socket of a WebSocket upgrade, before it is accepted or refused. */
export interface Upgrade {
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

/** One request on its way through the chain: each stage adds what it found. */
export class Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly upgrade: Upgrade | undefined;
  readonly capture: Capture;
  /** The immediate peer, and the client behind trusted proxies: the peer again where that is not known. */
  remoteAddress = '';
  realIp = '';
  /** The client's address, for whoever judges by it; undefined where a trusted proxy has named none. */
  clientAddress: string | undefined;
  /** Whether the peer may speak for clients behind it. */
  isPeerTrusted = false;
  /** Milliseconds since the epoch, and the monotonic clock beside it. */
  startedAtMs = 0;
  startedTick = 0;
  correlationId = '';
  /** Where it is traced. */
  span: Span | undefined;
  /** No audit record could be kept of it: health apart, it is refused. */
  isUnrecordable = false;
  target: NormalTarget | undefined;
  match: EndpointMatch | undefined;
  /** The service that answers; undefined for routes of the gateway's own, such as health. */
  service: string | undefined;
  /** Where that service is; undefined in this process. */
  upstream: Upstream | undefined;
  /** Whether the client guards are run by the service, or were by a gateway in front. */
  isGuardedElsewhere = false;
  token: SignedToken | undefined;
  principal: Principal | undefined;
  /**
   * What a limit of the client refuses the request with, where only the body tells whether it is refused as a whole: its
   * handler throws it, or answers one operation with it.
   */
  limitRefusal: AppError | undefined;
  /** Whether a handler has begun to read the body: what a refused request sent is not kept. */
  bodyRead = false;
  /** Whether a handler has parsed the whole body as JSON in UTF-8. */
  isBodyJson = false;
  /** Whether its turn on its connection has come. */
  hasBegun = false;
  /** Whether its body was no HTTP: it is refused, whatever is still at work on it. */
  isBroken = false;
  /** For requests whose caller is known by other means than a bearer token: the node and the kind of the record. */
  caller: { nodeId: string; isApi: boolean } | undefined;

  /** What its records show of its head, masked with the first of them. */
  recordedHead: RecordedHead | undefined;
  /** The operations of a request that brings them, asked for as it ends. */
  auditedOperations: (() => readonly AuditedOperation[]) | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, upgrade?: Upgrade) {
    this.req = req;
    this.res = res;
    this.upgrade = upgrade;
    this.capture = new Capture(req, res);
  }

  /** The caller's node, once it is known. */
  get nodeId(): string | undefined {
    return this.principal?.nodeId ?? this.caller?.nodeId;
  }

  /** Whether an answer has begun: it can be cut, and no longer be replaced. */
  get isAnswered(): boolean {
    return this.res.headersSent || this.capture.isEnded;
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

/** The principal of a request to a protected endpoint. */
export function principalOf(req: IncomingMessage): Principal {
  const { principal } = exchangeOf(req);
  if (!principal) throw new Error('a protected handler ran without a principal');
  return principal;
}
