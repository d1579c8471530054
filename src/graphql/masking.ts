import type { Plugin } from '@envelop/core';
import { type ExecutionResult, GraphQLError, type GraphQLFormattedError } from 'graphql';
import { AppError, type ErrorMessage } from '../errors/app-error.ts';
import type { Log } from '../lib/log.ts';
import { type Asker, askerOf, type GraphqlContext } from './context.ts';
import { withoutGivenValues } from './told-messages.rules.ts';

/** What of our own refusals is told as such: its author may come back later, or ask for less. */
const TOLD: ReadonlyMap<ErrorMessage, string> = new Map([
  ['service_unavailable', 'SERVICE_UNAVAILABLE'],
  ['gateway_timeout', 'GATEWAY_TIMEOUT'],
]);

/** Whoever is told an error: the id that finds it in the log again. */
type Recipient = Pick<Asker, 'correlationId'>;

/** Makes results and errors such that they may be told. */
export interface Teller {
  result(result: ExecutionResult): ExecutionResult;
  error(error: unknown): GraphQLError;
}

/** Turns unexpected errors into ones that tell nothing but the correlation id, and logs each of them once. */
export class ErrorMask {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * The error as it may be told: where it was made for a client itself, without the values that it quotes. What is among
   * `logged` is not logged again; what is logged comes to be among it.
   */
  error(error: unknown, { correlationId }: Recipient, logged = new Set<unknown>()): GraphQLError {
    if (isMeant(error)) return withoutQuotes(error);
    const cause = originOf(error);
    const refusal = cause instanceof AppError && TOLD.has(cause.message) ? cause : undefined;
    const fault = refusal ? refusal.cause : cause;
    if (fault !== undefined && !logged.has(fault)) {
      this.#log.error({ correlation_id: correlationId, err: fault }, 'operation failed');
      logged.add(fault);
    }
    const code = (refusal && TOLD.get(refusal.message)) ?? 'INTERNAL_SERVER_ERROR';
    const message = refusal?.message ?? 'internal error';
    return new GraphQLError(message, { ...placeOf(error), extensions: { code, correlationId } });
  }

  /** What tells one recipient results and errors. */
  of(recipient: Recipient): Teller {
    return { result: (result) => this.result(result, recipient), error: (error) => this.error(error, recipient) };
  }

  /** The result with its errors as they may be told; what failed for many of its places at once is logged once. */
  result(result: ExecutionResult, recipient: Recipient): ExecutionResult {
    const { errors } = result;
    const logged = new Set<unknown>();
    return errors ? { ...result, errors: errors.map((error) => this.error(error, recipient, logged)) } : result;
  }
}

/**
 * Envelop plugin: masks what executions give, and subscriptions that could not begin. What a subscription goes on giving is
 * masked by whoever sends it, so that nothing stands between the two for each event.
 */
export function useMasking(mask: ErrorMask): Plugin<GraphqlContext> {
  return {
    onExecute: ({ args }) => ({
      onExecuteDone({ result, setResult }) {
        if (!isStream(result)) setResult(mask.result(result, askerOf(args.contextValue)));
      },
    }),
    onSubscribe: ({ args }) => ({
      onSubscribeResult({ result, setResult }) {
        if (!isStream(result)) setResult(mask.result(result, askerOf(args.contextValue)));
      },
    }),
  };
}

/** An error as it is sent: without what was only meant for the HTTP layer. */
export function formatted(error: GraphQLError): GraphQLFormattedError {
  const { extensions, ...rest } = error.toJSON();
  const { http: _http, ...told } = extensions ?? {};
  return Object.keys(told).length > 0 ? { ...rest, extensions: told } : rest;
}

/** Where in the document and in the answer it happened. */
function placeOf(error: unknown) {
  if (!(error instanceof GraphQLError)) return {};
  const { nodes, source, positions, path } = error;
  return { nodes, source, positions, path };
}

function withoutQuotes(error: GraphQLError): GraphQLError {
  const message = withoutGivenValues(error.message);
  if (message === error.message) return error;
  const { nodes, source, positions, path, extensions } = error;
  return new GraphQLError(message, { nodes, source, positions, path, extensions });
}

/** Whether what an execution gave goes on giving. */
function isStream<Result extends object>(
  result: Result | AsyncIterableIterator<Result>,
): result is AsyncIterableIterator<Result> {
  return Symbol.asyncIterator in result;
}

/** Made as a GraphQLError, by the engine or by us, and not around something else that was thrown. */
export function isMeant(error: unknown): error is GraphQLError {
  if (!(error instanceof GraphQLError)) return false;
  const cause = causeOf(error);
  return cause === undefined || isMeant(cause);
}

function originOf(error: unknown): unknown {
  const cause = error instanceof GraphQLError ? causeOf(error) : undefined;
  return cause === undefined ? error : originOf(cause);
}

function causeOf({ cause, originalError }: GraphQLError): unknown {
  return cause ?? originalError;
}
