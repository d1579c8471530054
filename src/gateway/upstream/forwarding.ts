import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { type AppError, invalidRequest } from '../../errors/app-error.ts';
import type { Exchange } from '../exchange.ts';
import { announcesBody } from '../head.rules.ts';
import { Answer } from './answer.ts';
import type { Outcome } from './breaker.rules.ts';
import { badGateway, gatewayTimeout, payloadTooLarge, unavailable } from './failures.ts';
import { requestFields } from './headers.ts';
import { RequestBody } from './request-body.ts';
import { mayRetry } from './retry.rules.ts';
import { openTunnel } from './tunnel.ts';
import type { Turns, Waiter } from './turns.ts';
import type { LongStream, Upstream, UpstreamCounts } from './upstream.ts';
import type { CallError, UpstreamCall, UpstreamCalls } from './upstream-call.ts';

type Controller = Dispatcher.DispatchController;

/** Answers a request with a refusal; cuts the answer where it has begun. */
export type Refuse = (exchange: Exchange, refusal: AppError) => void;

interface ForwardingParts {
  exchange: Exchange;
  upstream: Upstream;
  calls: UpstreamCalls;
  refuse: Refuse;
}

/** Why a request is taken back from an upstream. */
const OVER = new Error('nobody waits for the answer');

/** How an attempt has failed, by what its request is counted under. */
const CALL_ERRORS: Partial<Record<keyof UpstreamCounts, CallError>> = {
  failed: 'unreachable',
  timedOut: 'timeout',
  left: 'left',
  cut: 'cut',
};

/** What senders to an endpoint with closed statuses do not know, whoever says it. */
const UNKNOWN_TO_CLOSED: ReadonlySet<number> = new Set([413, 502, 503, 504]);

/**
 * One request on its way to an upstream and back, both bodies streamed. It ends once: its answer has passed, it is refused
 * (an answer that has begun is cut), or its client has left. In all but the first the upstream sees its connection end.
 */
export class Forwarding implements Dispatcher.DispatchHandler, Waiter {
  readonly #exchange: Exchange;
  readonly #upstream: Upstream;
  readonly #calls: UpstreamCalls;
  readonly #refuse: Refuse;
  readonly #answer: Answer;
  readonly #body: RequestBody | undefined;
  #timer: NodeJS.Timeout | undefined;
  #controller: Controller | undefined;
  /** The latest attempt. */
  #call: UpstreamCall | undefined;
  #stream: LongStream | undefined;
  #isOver = false;
  #isTrial = false;
  /** Whether the circuit waits for the outcome. */
  #isUnsettled = false;
  #attempts = 0;
  /** Of the latest attempt: whether its head was written, and whether anything has come back. */
  #wasSent = false;
  #wasAnswered = false;

  constructor({ exchange, upstream, calls, refuse }: ForwardingParts) {
    this.#exchange = exchange;
    this.#upstream = upstream;
    this.#calls = calls;
    this.#refuse = refuse;
    this.#answer = new Answer(exchange, upstream.service.idle_timeout_ms, () => this.#cut());
    if (!announcesBody(exchange.req)) return;
    this.#body = new RequestBody({
      exchange,
      maxBytes: this.#maxBytes,
      onProgress: () => this.#timer?.refresh(),
      onTooLong: () => this.#end(payloadTooLarge(), 'refused'),
    });
  }

  /** Begins. Whatever happens is answered from here. */
  start(): void {
    const { req, res, match } = this.#exchange;
    res.once('close', () => this.#leave());
    const { retryAfterMs } = this.#upstream;
    if (this.#maxBytes > 0 && Number(req.headers['content-length'] ?? 0) > this.#maxBytes) {
      this.#end(payloadTooLarge(), 'refused');
    } else if (retryAfterMs !== undefined) {
      this.#end(unavailable(retryAfterMs), 'refused');
    } else {
      this.#timer = setTimeout(() => this.#expire(), match?.endpoint.timeout_ms);
      if (!this.#turns.enter(this)) this.#end(unavailable(0), 'refused');
    }
  }

  /** Its turn has come. */
  begin(): void {
    const admission = this.#upstream.admit();
    if (admission.isAdmitted) {
      this.#isTrial = admission.isTrial;
      this.#isUnsettled = true;
      this.#send();
    } else {
      this.#turns.leave();
      this.#end(unavailable(admission.retryAfterMs), 'refused');
    }
  }

  /** The circuit has opened while it waited. */
  dismiss(): void {
    this.#end(unavailable(this.#upstream.retryAfterMs ?? 0), 'refused');
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
    const isClosed = this.#exchange.match?.endpoint.statuses === 'closed';
    if (status < 200) this.#answer.inform(status, headers);
    // Answered already: what followed the head of the request was no HTTP.
    else if (this.#exchange.isAnswered) this.#leave();
    else if (isClosed && UNKNOWN_TO_CLOSED.has(status)) this.#replace(status);
    else this.#pass(status, headers);
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#answer.data(controller, chunk);
  }

  onResponseEnd(): void {
    this.#close(undefined);
    this.#turns.leave();
    this.#answer.end();
  }

  onRequestUpgrade(_controller: Controller, _status: number, headers: IncomingHttpHeaders, socket: Duplex): void {
    this.#settle('answered');
    this.#upstream.counts.answered += 1;
    this.#call?.answered(101, true);
    this.#close(undefined);
    const tunnel = openTunnel(this.#exchange, headers, socket, () => {
      this.#upstream.streams.delete(tunnel);
      this.#turns.leave();
    });
    this.#upstream.streams.add(tunnel);
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    if (!this.#isOver && !this.#wasAnswered && mayRetry({ attempt: this.#attempts, wasSent: this.#wasSent })) {
      this.#upstream.counts.retried += 1;
      this.#call?.end('unreachable');
      // The pool is still putting the connection away that has failed.
      queueMicrotask(() => (this.#isOver ? this.#turns.leave() : this.#send()));
      return;
    }
    // The circuit hears of it before the next one begins.
    if (!this.#isOver) this.#settle('failed');
    this.#turns.leave();
    if (!this.#isOver) this.#end(badGateway(error), 'failed');
  }

  #pass(status: number, headers: IncomingHttpHeaders): void {
    clearTimeout(this.#timer);
    this.#answer.begin(status, headers);
    this.#settle('answered');
    this.#upstream.counts.answered += 1;
    const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
    this.#call?.answered(status, isStream);
    if (isStream) this.#enlist({ stop: () => this.#cut() });
  }

  /** Answers in the place of the upstream, whose status the sender does not know. */
  #replace(status: number): void {
    this.#settle('answered');
    this.#call?.answered(status, false);
    this.#end(status === 413 ? payloadTooLarge() : unavailable(0), 'answered');
  }

  get #turns(): Turns {
    return this.#exchange.upgrade ? this.#upstream.sockets : this.#upstream.requests;
  }

  /** 0: no limit. */
  get #maxBytes(): number {
    return this.#exchange.match?.endpoint.max_body_bytes ?? 0;
  }

  #send(): void {
    const { req, upgrade } = this.#exchange;
    this.#attempts += 1;
    this.#call = this.#calls.begin(this.#upstream.name, this.#exchange, this.#attempts);
    this.#controller = undefined;
    this.#wasSent = false;
    const request: Dispatcher.DispatchOptions = {
      path: this.#upstream.prefix + (req.url ?? ''),
      method: req.method ?? '',
      headers: requestFields(this.#exchange, this.#call.traceparent),
      body: this.#body ?? null,
    };
    this.#upstream.pool.dispatch(upgrade ? { ...request, upgrade: 'websocket' } : request, this);
  }

  #settle(outcome: Outcome): void {
    if (!this.#isUnsettled) return;
    this.#isUnsettled = false;
    this.#upstream.settle(outcome, this.#isTrial);
  }

  /** The time of the endpoint is over. A client that stops sending is no fault of the upstream. */
  #expire(): void {
    if (this.#body?.isStarved) {
      this.#end(invalidRequest([{ path: '', message: 'must be sent without long pauses' }]), 'left');
    } else {
      this.#settle('failed');
      this.#end(gatewayTimeout(), 'timedOut');
    }
  }

  /** The client has left. */
  #leave(): void {
    if (this.#isOver) return;
    this.#upstream.counts.left += 1;
    this.#close('left');
    this.#takeBack();
  }

  /** Ends an answer that has begun, so that nobody takes it for a complete one. */
  #cut(): void {
    this.#end(badGateway(undefined), 'cut');
  }

  #end(refusal: AppError, counted: keyof UpstreamCounts): void {
    if (this.#isOver) return;
    const { req, res } = this.#exchange;
    this.#upstream.counts[counted] += 1;
    this.#close(CALL_ERRORS[counted]);
    this.#answer.revoke();
    // The end of a connection is the end of a body to HTTP/1.0.
    if (res.headersSent && req.httpVersion === '1.0') req.socket.resetAndDestroy();
    this.#refuse(this.#exchange, refusal);
    this.#takeBack();
  }

  #close(error: CallError | undefined): void {
    this.#call?.end(error);
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#answer.stop();
    if (this.#stream) this.#upstream.streams.delete(this.#stream);
  }

  #enlist(stream: LongStream): void {
    this.#stream = stream;
    this.#upstream.streams.add(stream);
  }

  #takeBack(): void {
    this.#settle('unknown');
    this.#turns.cancel(this);
    this.#controller?.abort(OVER);
  }
}
