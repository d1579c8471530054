import type { Plugin } from '@envelop/core';
import { type ExecutionResult, GraphQLError, type GraphQLFormattedError } from 'graphql';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import type { Log } from '../../../lib/log.ts';
import { AppError, type ErrorMessage } from '../../../platform/errors.ts';
import { originOf, placeOf, shownError } from '../kit/graphql-errors.ts';
import type { OperationRequest } from './runtime.ts';

const SYNTAX_ERROR = 'Syntax Error: ';
/** Tokens that can be a value, or a piece of one, as a syntax error quotes them; likewise a broken escape. */
const TOKEN = /\b(Name|Int|Float|String|BlockString|Comment) ".*"/s;
const ESCAPE = /(escape sequence): ".*"/s;
/** What follows the expectation is the value to the end, or only a suggestion lies between: a name of the schema. */
const FOUND = /[,;] found: .*$/s;
const FOUND_BEHIND_SUGGESTION = /\? Found: .*$/s;
const NOT_REPRESENTED = /( cannot represent (?:[\w -]{1,40} )?value): .*$/s;
const OPERATION = /^(Unknown operation named) "(?![_A-Za-z]\w*"\.$).*"/s;
const ENUM_VALUE = { before: 'Value "', behind: '" does not exist in "' };

/**
 * A message of the engine (graphql-js) without the values that it quotes of what was sent, any of which may be a secret:
 * which variable or argument is at fault, where in it and what was expected there stays. Every other message is itself.
 * Takes time in proportion to the length of the message.
 */
export function withoutGivenValues(message: string): string {
  if (message.startsWith(SYNTAX_ERROR)) return message.replace(TOKEN, '$1').replace(ESCAPE, '$1');
  const told = message
    .replace(FOUND, '.')
    .replace(FOUND_BEHIND_SUGGESTION, '?')
    .replace(NOT_REPRESENTED, '$1.')
    .replace(OPERATION, '$1 so');
  const from = told.indexOf(ENUM_VALUE.before);
  const to = told.lastIndexOf(ENUM_VALUE.behind);
  return from < 0 || to < from ? told : `${told.slice(0, from)}The value${told.slice(to + 1)}`;
}

/** What of our own refusals is told as such: its author may come back later, or ask for less. */
const TOLD: ReadonlyMap<ErrorMessage, string> = new Map([
  ['service_unavailable', 'SERVICE_UNAVAILABLE'],
  ['gateway_timeout', 'GATEWAY_TIMEOUT'],
]);

/** Whoever is told an error: the id that finds it in the log again. */
type Recipient = Pick<Exchange, 'correlationId'>;

/** Masks unexpected errors: logs each of them once, and shows the client nothing but the correlation id. */
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
    const shown = shownError(error);
    if (shown) return withoutQuotes(shown);
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
export function useMasking(mask: ErrorMask): Plugin<OperationRequest> {
  return {
    onExecute: ({ args }) => ({
      onExecuteDone({ result, setResult }) {
        if (!isStream(result)) setResult(mask.result(result, args.contextValue.exchange));
      },
    }),
    onSubscribe: ({ args }) => ({
      onSubscribeResult({ result, setResult }) {
        if (!isStream(result)) setResult(mask.result(result, args.contextValue.exchange));
      },
    }),
  };
}

/** Returns an error as it is sent, without the extension that only the HTTP layer reads. */
export function formatted(error: GraphQLError): GraphQLFormattedError {
  const { extensions, ...rest } = error.toJSON();
  const { http: _http, ...told } = extensions ?? {};
  return Object.keys(told).length > 0 ? { ...rest, extensions: told } : rest;
}

function withoutQuotes(error: GraphQLError): GraphQLError {
  const message = withoutGivenValues(error.message);
  if (message === error.message) return error;
  return new GraphQLError(message, { ...placeOf(error), extensions: error.extensions });
}

/** Whether what an execution gave goes on giving. */
function isStream<Result extends object>(
  result: Result | AsyncIterableIterator<Result>,
): result is AsyncIterableIterator<Result> {
  return Symbol.asyncIterator in result;
}
