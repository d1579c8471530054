import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { InvalidTokenError } from '../../access/identity/callers.ts';
import type { AccessWatch } from '../../access/revocation/access-watch.ts';
import { callerAddress } from '../../lib/ip-address.ts';
import type { Log } from '../../lib/log.ts';
import type { Semaphore, Waiter } from '../../lib/semaphore.ts';
import { gatewayTimeout, invalidRequest, payloadTooLarge, type Refusal } from '../../platform/errors.ts';
import type { Outcome } from '../endpoints/breaker.rules.ts';
import type { LongStream, Upstream, UpstreamCounts } from '../endpoints/upstream.ts';
import { announcesBody } from '../exchange/capture.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { reasonOf } from '../exchange/refusals.ts';
import { refuse } from '../exchange/responses.ts';
import { badGateway, replaceOwnAddresses, requestFields, unavailable } from './headers.ts';
import { openTunnel, RequestBody, UpstreamResponse } from './transfer.ts';
import type { CallError, UpstreamCall, UpstreamCalls } from './upstream-call.ts';

/** The most attempts of a request. Repeating one that the upstream may have processed is for the client to decide. */
const MAX_ATTEMPTS = 2;

type Controller = Dispatcher.DispatchController;

/**
 * The age, in ms, at which a request counts as a connection that outlives its request, so that it ends with its token.
 * It is then also detected that the token ended before.
 */
const LASTING_MS = 1_000;

/** Methods of requests that clients may repeat without harm (RFC 9110 section 9.2.1). */
const SAFE_METHODS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** The reason with which a request to an upstream is aborted. */
const OVER = new Error('the caller has disconnected');

/** The errors for metrics and traces, by the count that a failed request is added to. */
const CALL_ERRORS: Partial<Record<keyof UpstreamCounts, CallError>> = {
  failed: 'unreachable',
  invalid: 'invalid_response',
  timedOut: 'timeout',
  left: 'left',
  cut: 'cut',
};

/**
 * Statuses that clients of endpoints with `statuses: closed` do not know; they are replaced even in upstreams'
 * responses.
 */
const UNKNOWN_TO_CLOSED: ReadonlySet<number> = new Set([413, 502, 503, 504]);

/**
 * Forwards one request to an upstream and streams both bodies. It ends in one of three ways: the response has been
 * passed on, the request is refused (a response that has begun is cut off), or the client has left. In the last two,
 * the request to the upstream is aborted.
 */
export class Forwarding implements Dispatcher.DispatchHandler, Waiter {
  readonly #deps;
  readonly #response: UpstreamResponse;
  readonly #body: RequestBody | undefined;
  /** Who takes turns at the upstream: the tenant or, without a token, the address. */
  readonly #key: string;
  #timer: NodeJS.Timeout | undefined;
  #lasting: NodeJS.Timeout | undefined;
  #unwatch: (() => void) | undefined;
  #controller: Controller | undefined;
  /** The attempt in progress, or the last one. */
  #call: UpstreamCall | undefined;
  #stream: LongStream | undefined;
  #isOver = false;
  #isTrial = false;
  /** Whether the token has expired while the upstream works on a request that it has in full. */
  #hasExpired = false;
  /** Whether the circuit breaker still has to be given the outcome of this request. */
  #isUnsettled = false;
  #attempts = 0;
  /**
   * `#wasSent`: whether the latest attempt was written to a connection; `#wasAnswered`: whether any of a response has
   * arrived.
   */
  #wasSent = false;
  #wasAnswered = false;

  constructor(deps: {
    exchange: Exchange;
    upstream: Upstream;
    calls: UpstreamCalls;
    watch: Pick<AccessWatch, 'watch'>;
    log: Log;
    publicUrl: string;
  }) {
    const { exchange, upstream } = deps;
    this.#deps = deps;
    this.#key = exchange.state.nodeId ?? callerAddress(exchange.realIp);
    this.#response = new UpstreamResponse(exchange, upstream.service.idle_timeout_ms, () => this.#cut());
    if (!announcesBody(exchange.req)) return;
    this.#body = new RequestBody({
      exchange,
      maxBytes: this.#maxBytes,
      onProgress: () => this.#timer?.refresh(),
      onTooLong: () => this.#end(payloadTooLarge(this.#maxBytes), 'refused'),
    });
  }

  /** Starts forwarding, or refuses the request. Every outcome is answered by this object. */
  start(): void {
    const { req, res, state } = this.#deps.exchange;
    res.once('close', () => this.#leave());
    const retryAfterMs = this.#deps.upstream.retryAfterMs(this.#client);
    if (this.#maxBytes > 0 && Number(req.headers['content-length'] ?? 0) > this.#maxBytes) {
      this.#end(payloadTooLarge(this.#maxBytes), 'refused');
    } else if (retryAfterMs !== undefined) {
      this.#end(unavailable(retryAfterMs), 'refused');
    } else {
      this.#timer = setTimeout(() => this.#expire(), state.endpoint?.timeout_ms);
      this.#watchToken(LASTING_MS);
      if (!this.#semaphore.acquire(this.#key, this)) this.#end(unavailable(0), 'refused');
    }
  }

  onPermit(): void {
    const admission = this.#deps.upstream.admit(this.#client);
    if (admission.isAdmitted) {
      this.#isTrial = admission.isTrial;
      this.#isUnsettled = true;
      this.#send();
    } else {
      this.#deps.upstream.release(this.#semaphore, this.#key);
      this.#end(unavailable(admission.retryAfterMs), 'refused');
    }
  }

  /** Refuses the request; called when the circuit breaker opens while it waits in the queue. */
  onRefused(): void {
    this.#end(unavailable(this.#deps.upstream.retryAfterMs(this.#client) ?? 0), 'refused');
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(OVER);
    else this.#wasSent = true;
  }

  onResponseStarted(): void {
    this.#wasAnswered = true;
  }

  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    const isClosed = this.#deps.exchange.state.endpoint?.statuses === 'closed';
    replaceOwnAddresses(headers, this.#deps.upstream, this.#deps.publicUrl);
    if (status < 200) this.#response.inform(status, headers);
    // A refusal was already sent, because the bytes after the head of the request were not valid HTTP.
    else if (this.#deps.exchange.isAnswered) this.#leave();
    else if (isClosed && UNKNOWN_TO_CLOSED.has(status)) this.#replace(status);
    else this.#pass(status, headers);
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#response.data(controller, chunk);
  }

  onResponseEnd(): void {
    this.#close(undefined);
    this.#deps.upstream.release(this.#semaphore, this.#key);
    this.#response.end();
  }

  onRequestUpgrade(_controller: Controller, _status: number, headers: IncomingHttpHeaders, socket: Duplex): void {
    this.#settle('answered');
    this.#deps.upstream.counts.answered += 1;
    replaceOwnAddresses(headers, this.#deps.upstream, this.#deps.publicUrl);
    this.#call?.answered(101, true);
    this.#close(undefined);
    const tunnel = openTunnel(this.#deps.exchange, headers, socket, () => {
      this.#deps.upstream.streams.delete(tunnel);
      this.#deps.upstream.release(this.#semaphore, this.#key);
      unwatch?.();
    });
    this.#deps.upstream.streams.add(tunnel);
    const { state, guarded, audit } = this.#deps.exchange;
    const unwatch =
      state.principal &&
      this.#deps.watch.watch(state.principal, guarded, (refusal) => {
        audit.reason = reasonOf(refusal);
        tunnel.stop();
      });
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    if (!this.#isOver && !this.#wasAnswered && !this.#wasSent && this.#attempts < MAX_ATTEMPTS) {
      this.#deps.upstream.counts.retried += 1;
      this.#call?.end('unreachable');
      // The pool is still removing the connection that failed.
      queueMicrotask(() => (this.#isOver ? this.#deps.upstream.release(this.#semaphore, this.#key) : this.#send()));
      return;
    }
    // The circuit breaker is given the outcome before the next request begins.
    if (!this.#isOver) this.#settle(this.#wasAnswered ? 'answered' : this.#wasSent ? 'broken' : 'unreachable');
    this.#deps.upstream.release(this.#semaphore, this.#key);
    if (!this.#isOver) this.#end(badGateway(error), this.#wasAnswered ? 'invalid' : 'failed');
  }

  #pass(status: number, headers: IncomingHttpHeaders): void {
    clearTimeout(this.#timer);
    this.#response.begin(status, headers);
    this.#settle('answered');
    this.#deps.upstream.counts.answered += 1;
    const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
    this.#call?.answered(status, isStream);
    if (!isStream) {
      // The token has expired while the answer was awaited: it may still be sent in the time of an ordinary one.
      if (this.#hasExpired) this.#watchToken(LASTING_MS);
      return;
    }
    this.#watchToken(0);
    this.#stream = { stop: () => this.#cut() };
    this.#deps.upstream.streams.add(this.#stream);
  }

  /** Replaces a response whose status the client does not know by an error that it knows. */
  #replace(status: number): void {
    this.#settle('answered');
    this.#call?.answered(status, false);
    const message = 'must be shorter: it exceeds the limit of its service';
    this.#end(status === 413 ? invalidRequest([{ path: '', message }]) : unavailable(0), 'answered');
  }

  /** The identity of the client for the circuit breaker: the client of the token, or else the address. */
  get #client(): string {
    const { state, realIp } = this.#deps.exchange;
    return state.principal?.clientId ?? state.principal?.subject ?? callerAddress(realIp);
  }

  get #semaphore(): Semaphore {
    return this.#deps.exchange.upgrade ? this.#deps.upstream.sockets : this.#deps.upstream.requests;
  }

  /** The longest request body of the endpoint, in bytes; 0 means no limit. */
  get #maxBytes(): number {
    return this.#deps.exchange.state.endpoint?.max_body_bytes ?? 0;
  }

  #send(): void {
    const { req, upgrade } = this.#deps.exchange;
    this.#attempts += 1;
    this.#call = this.#deps.calls.begin(this.#deps.upstream.name, this.#deps.exchange, this.#attempts);
    this.#controller = undefined;
    this.#wasSent = false;
    const request: Dispatcher.DispatchOptions = {
      path: this.#deps.upstream.prefix + (req.url ?? ''),
      method: req.method ?? '',
      headers: requestFields(this.#deps.exchange, this.#call.traceparent),
      body: this.#body ?? null,
    };
    this.#deps.upstream.pool.dispatch(upgrade ? { ...request, upgrade: 'websocket' } : request, this);
  }

  #settle(outcome: Outcome): void {
    if (!this.#isUnsettled) return;
    this.#isUnsettled = false;
    this.#deps.upstream.settle({ outcome, client: this.#client, isTrial: this.#isTrial });
  }

  /**
   * Ends a request at the timeout of its endpoint. If the client has stopped sending, it does not count as the
   * upstream's failure.
   */
  #expire(): void {
    if (this.#body?.isStarved) {
      this.#end(invalidRequest([{ path: '', message: 'must be sent without long pauses' }]), 'left');
    } else {
      this.#settle(this.#wasAnswered ? 'answered' : 'broken');
      this.#end(gatewayTimeout(), 'timedOut');
    }
  }

  /** Watches the token, once `afterMs` milliseconds have passed. */
  #watchToken(afterMs: number): void {
    const {
      guarded,
      state: { principal },
    } = this.#deps.exchange;
    if (!principal) return;
    clearTimeout(this.#lasting);
    this.#unwatch?.();
    this.#lasting = setTimeout(() => {
      this.#unwatch = this.#deps.watch.watch(principal, guarded, (refusal) => this.#endWithToken(refusal));
    }, afterMs);
  }

  /**
   * Ends a request whose token has ended. If it has only expired, a request that the upstream has in full and that may
   * not be repeated is still answered, within the timeout of its endpoint.
   */
  #endWithToken(refusal: Refusal): void {
    const { req, isAnswered } = this.#deps.exchange;
    const isExpired = refusal instanceof InvalidTokenError && refusal.end === 'expired';
    this.#hasExpired = isExpired && !isAnswered && req.complete && !SAFE_METHODS.has(req.method);
    if (!this.#hasExpired) this.#end(refusal, 'cut');
  }

  /** Ends a request whose client has left. */
  #leave(): void {
    if (this.#isOver) return;
    this.#deps.upstream.counts.left += 1;
    this.#close('left');
    this.#takeBack();
  }

  /** Cuts off a response that has begun, so that it cannot be taken for a complete one. */
  #cut(): void {
    this.#end(badGateway(undefined), 'cut');
  }

  #end(refusal: Refusal, counted: keyof UpstreamCounts): void {
    if (this.#isOver) return;
    const { req, res } = this.#deps.exchange;
    this.#deps.upstream.counts[counted] += 1;
    this.#close(CALL_ERRORS[counted]);
    this.#response.revoke();
    // For HTTP/1.0, an orderly end of the connection would mark the body as complete.
    if (res.headersSent && req.httpVersion === '1.0') req.socket.resetAndDestroy();
    refuse(this.#deps.exchange, refusal, this.#deps.log);
    this.#takeBack();
  }

  #close(error: CallError | undefined): void {
    this.#call?.end(error);
    this.#isOver = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#lasting);
    this.#unwatch?.();
    this.#response.stop();
    if (this.#stream) this.#deps.upstream.streams.delete(this.#stream);
  }

  #takeBack(): void {
    this.#settle('unknown');
    this.#semaphore.cancel(this.#key, this);
    this.#controller?.abort(OVER);
  }
}
