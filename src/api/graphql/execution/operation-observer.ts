import { type ExecutionArgs, type ExecutionResult, getOperationAST, type OperationDefinitionNode } from 'graphql';
import type { Span, Tracer } from '../../../lib/tracing.ts';
import type { OperationRequest } from './documents.ts';
import { shownError } from './error-masking.ts';
import { operationDurations } from './operation-durations.ts';

/** Begins the span of an event's delivery to one subscriber; returns undefined if this delivery is not traced. */
export type StartDelivery = (transport: 'sse' | 'websocket') => Span | undefined;

/**
 * The maximum number of deliveries of one event that each process traces; an event may have thousands of subscribers.
 */
const TRACED_DELIVERIES = 8;
const MAX_NAME_LENGTH = 64;

/** Measures and traces operations. Operation names are not used as metric labels, because clients choose them. */
export class OperationObserver {
  readonly durations;
  readonly #tracer: Tracer | undefined;

  constructor(tracer?: Tracer, durations = operationDurations()) {
    this.#tracer = tracer;
    this.durations = durations;
  }

  /** Executes an operation or begins a subscription, and records its duration, outcome and span. */
  async run<Result extends object>(
    args: ExecutionArgs,
    execute: (args: ExecutionArgs) => Promise<Result>,
  ): Promise<Result> {
    const startedTick = performance.now();
    const operation = getOperationAST(args.document, args.operationName);
    const type = operation?.operation ?? 'query';
    const span = this.#tracer && this.#start(this.#tracer, args, operation);
    const observeEnd = (errors: readonly unknown[]) => {
      const outcome = errors.length === 0 ? 'ok' : errors.every((error) => shownError(error)) ? 'error' : 'failed';
      this.durations.observe({ graphql_operation_type: type, outcome }, (performance.now() - startedTick) / 1_000);
      span?.end(outcome === 'ok' ? undefined : 'graphql');
    };
    const run = () => execute(args);
    try {
      const result = await (span ? span.run(run) : run());
      observeEnd(('errors' in result && (result as ExecutionResult).errors) || []);
      return result;
    } catch (error) {
      observeEnd([error]);
      throw error;
    }
  }

  /** Returns the function that traces the deliveries of an event; undefined if the event belongs to no trace. */
  deliveryOf(event: object): StartDelivery | undefined {
    const tracer = this.#tracer;
    const parent = 'traceparent' in event ? event.traceparent : undefined;
    if (!tracer || typeof parent !== 'string') return undefined;
    let left = TRACED_DELIVERIES;
    return (transport) => {
      if (left === 0) return undefined;
      left -= 1;
      const attributes = { 'graphql.operation.type': 'subscription', 'portcullis.transport': transport };
      return tracer.start('deliver transaction_events', { kind: 'internal', parent, attributes });
    };
  }

  #start(tracer: Tracer, args: ExecutionArgs, operation: OperationDefinitionNode | null | undefined): Span | undefined {
    const { exchange } = args.contextValue as Partial<OperationRequest>;
    if (!exchange?.span) return undefined;
    const type = operation?.operation ?? 'query';
    const name = operation?.name?.value.slice(0, MAX_NAME_LENGTH);
    const attributes = { 'graphql.operation.type': type, ...(name ? { 'graphql.operation.name': name } : {}) };
    return tracer.start(type, { kind: 'internal', parent: exchange.span.traceparent, attributes });
  }
}
