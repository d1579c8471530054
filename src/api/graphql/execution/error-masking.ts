import { setImmediate as nextTick } from 'node:timers/promises';
import { type ExecutionResult, GraphQLError, type GraphQLErrorOptions, type GraphQLFormattedError } from 'graphql';
import { InvalidTokenError } from '../../../access/identity/callers.ts';
import { CursorExpiredError, SlowConsumerError, StreamStoppedError } from '../../../events/streams/event-log.ts';
import type { Exchange } from '../../../gateway/exchange/exchange.ts';
import { statusOf } from '../../../gateway/exchange/refusals.ts';
import type { Log } from '../../../lib/log.ts';
import { respelt } from '../../../lib/spelling.ts';
import { isShort, limitedJson, runCooperatively, SLICE_LENGTH } from '../../../lib/yielding.ts';
import { Refusal, type RefusalCode } from '../../../platform/errors.ts';
import { heldMemory } from '../../../platform/held-memory.ts';
import type { InputIssue } from '../kit/resolvers.ts';

/** The longest reason of an operation, in characters. */
const MAX_REASON = 500;

/**
 * Returns why an operation was refused, for the log and the audit record: the codes of its errors, each with the missing
 * permission or the arguments at fault, never with a value.
 */
export function reasonIn(errors: readonly GraphQLError[]): string {
  const reasons = errors.map(({ extensions: { code = 'INVALID', permission = '', issues } }) => {
    const members = Array.isArray(issues) ? issues.map(({ path }: InputIssue) => path.join('.')) : [permission];
    return [code, ...members].join(' ').trim();
  });
  return [...new Set(reasons)].join(', ').slice(0, MAX_REASON);
}

/**
 * Returns an error in the form that a client may see, if it is a GraphQL error of the engine or a field, or a refusal
 * by the domain, an event stream or a client guard. Returns undefined for an unexpected error.
 */
export function shownError(error: unknown): GraphQLError | undefined {
  const origin = originOf(error);
  return error instanceof GraphQLError && origin instanceof GraphQLError ? error : refusedError(origin, placeOf(error));
}

/** Returns where an error happened: its location in the document and its path in the result. */
export function placeOf(error: unknown): GraphQLErrorOptions {
  if (!(error instanceof GraphQLError)) return {};
  const { nodes, source, positions, path } = error;
  return { nodes, source, positions, path };
}

/** Returns the innermost error that GraphQL errors wrap, or the error itself. */
export function originOf(error: unknown): unknown {
  const cause = error instanceof GraphQLError ? (error.cause ?? error.originalError) : undefined;
  return cause === undefined ? error : originOf(cause);
}

/** The codes of the errors that a refusal outside a union becomes; others are masked. */
const CODES: Partial<Record<RefusalCode, string>> = {
  not_found: 'NOT_FOUND',
  page_too_large: 'PAGE_TOO_LARGE',
  forbidden: 'FORBIDDEN',
  mtls_required: 'FORBIDDEN',
  ip_not_allowed: 'FORBIDDEN',
  idempotency_conflict: 'IDEMPOTENCY_CONFLICT',
  rate_limit_exceeded: 'RATE_LIMITED',
  monthly_limit_exceeded: 'RATE_LIMITED',
};

function refusedError(error: unknown, options: GraphQLErrorOptions): GraphQLError | undefined {
  const coded = (message: string, code: string | undefined, more = {}) =>
    new GraphQLError(message, { ...options, extensions: { code, ...more } });
  if (error instanceof CursorExpiredError) return coded('cursor_expired', 'CURSOR_EXPIRED');
  if (error instanceof SlowConsumerError) return coded('slow_consumer', 'SLOW_CONSUMER');
  if (error instanceof StreamStoppedError) return coded(error.message, 'STOPPING');
  if (error instanceof InvalidTokenError) return coded(error.description, 'UNAUTHENTICATED');
  if (!(error instanceof Refusal)) return undefined;
  const code = CODES[error.code];
  if (error.code === 'idempotency_conflict') return coded(error.message, code, { http: { status: statusOf(error) } });
  const { retryAfterSeconds: retryAfter } = error.details;
  return code === undefined ? undefined : coded(error.message, code, retryAfter === undefined ? {} : { retryAfter });
}

const SYNTAX_ERROR = 'Syntax Error: ';
/**
 * Matches a token that a syntax error quotes and that may be a value or a part of one. `ESCAPE` does the same for an
 * invalid escape sequence.
 */
const TOKEN = /\b(Name|Int|Float|String|BlockString|Comment) ".*"/s;
const ESCAPE = /(escape sequence): ".*"/s;
/**
 * Matches the quoted value that ends a message about an unexpected value. `FOUND_BEHIND_SUGGESTION` matches it after a
 * suggestion, which is a name of the schema.
 */
const FOUND = /[,;] found: .*$/s;
const FOUND_BEHIND_SUGGESTION = /\? Found: .*$/s;
const NOT_REPRESENTED = /( cannot represent (?:[\w -]{1,40} )?value): .*$/s;
/** Match the messages of graphql-js and Yoga about missing values. */
const NO_FIELD = / to include required field ("\w+")\.$/;
const NOT_PROVIDED = /Expected (a value of) non-null type ("[^"]*") to be provided\.$/;
const NO_QUERY = /^Must provide query string\.$/;
/** Matches what Yoga says of a member of a request that it does not know. */
const UNKNOWN_MEMBER = /^Unexpected parameter "(\w{1,64})" in the request body\.$/;
const MEMBERS = ['query', 'variables', 'operationName', 'extensions', 'documentId'];
const OPERATION = /^Unknown operation named "(?![_A-Za-z]\w*"\.$).*"/s;
const ENUM_VALUE = { before: 'Value "', behind: '" does not exist in "' };

/**
 * Returns a message of graphql-js without the values it quotes from the request, since any of them may be a secret. It
 * still names the variable or argument, the path inside it and what was expected; of what is missing it says that it is
 * required. Returns any other message unchanged.
 * Runs in time linear in the length of the message.
 */
export function withoutValues(message: string): string {
  if (message.startsWith(SYNTAX_ERROR)) return message.replace(TOKEN, '$1').replace(ESCAPE, '$1');
  const masked = message
    .replace(FOUND, '.')
    .replace(FOUND_BEHIND_SUGGESTION, '?')
    .replace(NOT_REPRESENTED, '$1.')
    .replace(OPERATION, 'There is no operation with the given name')
    .replace(NO_FIELD, ': $1 is required in it.')
    .replace(NOT_PROVIDED, '$1 type $2 is required.')
    .replace(NO_QUERY, 'query is required: a document')
    .replace(UNKNOWN_MEMBER, withRespelt);
  const from = masked.indexOf(ENUM_VALUE.before);
  const to = masked.lastIndexOf(ENUM_VALUE.behind);
  return from < 0 || to < from ? masked : `${masked.slice(0, from)}The value${masked.slice(to + 1)}`;
}

function withRespelt(message: string, name: string): string {
  const suggestion = respelt(name, MEMBERS);
  return suggestion === undefined ? message : `${message.slice(0, -1)}: ${suggestion} is the member's name`;
}

/**
 * The GraphQL codes of the refusals for overload and timeouts, which the client sees because it can retry later or
 * request less.
 */
const SHOWN_CODES: ReadonlyMap<RefusalCode, string> = new Map([
  ['service_unavailable', 'SERVICE_UNAVAILABLE'],
  ['gateway_timeout', 'GATEWAY_TIMEOUT'],
]);

/** The maximum length of the response to an operation, and of that to a whole batch, in bytes. */
export const MAX_RESULT_BYTES = 8 * 1024 * 1024;

/** A result in the form in which it is sent, with its JSON if that is long. */
export interface MaskedResult extends ExecutionResult {
  stringify?: () => string;
}

/** The minimum length of an error's JSON without its message. */
const ERROR_LENGTH = '{"message":""}'.length;
/** Enough bytes for any text that `isShort` accepts. */
const SHORT_BYTES = 8 * SLICE_LENGTH;

/** Returns the result that stands for one whose JSON is too long. */
export function pageTooLarge(): MaskedResult {
  const message = `the response would be longer than ${MAX_RESULT_BYTES} bytes: request fewer rows or fewer fields`;
  return { data: null, errors: [new GraphQLError(message, { extensions: { code: 'PAGE_TOO_LARGE' } })] };
}

/** The exchange whose correlation id a masked error carries, so that the log entry can be found. */
type Recipient = Pick<Exchange, 'correlationId'>;

/** Masks unexpected errors: logs each once and gives the client only the correlation id. */
export class ErrorMask {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Returns an error as the client may see it. An error meant for the client loses only the values that it quotes. Any
   * other becomes a general error, or one of `SHOWN_CODES`; its cause is logged and added to `logged`, unless it is in there
   * already.
   */
  error(error: unknown, { correlationId }: Recipient, logged = new Set<unknown>()): GraphQLError {
    const shown = shownError(error);
    if (shown) return withoutQuotes(shown);
    const cause = originOf(error);
    const refusal = cause instanceof Refusal && SHOWN_CODES.has(cause.code) ? cause : undefined;
    const fault = refusal ? refusal.cause : cause;
    if (fault !== undefined && !logged.has(fault)) {
      this.#log.error({ correlation_id: correlationId, err: fault }, 'operation failed');
      logged.add(fault);
    }
    const code = (refusal && SHOWN_CODES.get(refusal.code)) ?? 'INTERNAL_SERVER_ERROR';
    const message = refusal?.message ?? 'internal error';
    return new GraphQLError(message, { ...placeOf(error), extensions: { code, correlationId } });
  }

  /**
   * Returns a result with its errors masked, or the error `PAGE_TOO_LARGE` instead of one whose JSON is longer than
   * `maxBytes`. An error that failed several fields at once is logged once. A long result does not delay other
   * requests.
   */
  async result(
    result: ExecutionResult,
    recipient: Recipient,
    maxBytes: number = MAX_RESULT_BYTES,
  ): Promise<MaskedResult> {
    const { errors: unmasked, ...withoutErrors } = result;
    const logged = new Set<unknown>();
    const held = heldMemory();
    // What of an error its length depends on.
    const errorParts = unmasked?.map(({ message, path, extensions }) => [message, path, extensions]);
    if (maxBytes > SHORT_BYTES && isShort(withoutErrors) && isShort(errorParts)) {
      if (!unmasked) return result;
      const masked = () => ({ ...result, errors: unmasked.map((error) => this.error(error, recipient, logged)) });
      return runCooperatively(masked, held?.unstoppable, { isBegun: true });
    }
    const errors: GraphQLError[] = [];
    let bytes = 0;
    for (const error of unmasked ?? []) {
      const masked = this.error(error, recipient, logged);
      errors.push(masked);
      bytes += masked.message.length + ERROR_LENGTH;
      if (bytes > maxBytes) return pageTooLarge();
      await nextTick();
      await runCooperatively(() => undefined, held?.unstoppable);
    }
    const masked = unmasked ? { ...result, errors } : { ...result };
    const response = unmasked ? { ...masked, errors: errors.map(formatted) } : masked;
    try {
      const text = await limitedJson(response, maxBytes, held, (bytes) => held?.raiseTo(bytes));
      return text === undefined ? pageTooLarge() : { ...masked, stringify: () => text };
    } catch (error) {
      return { data: null, errors: [this.error(error, recipient, logged)] };
    }
  }
}

/** Returns the JSON of a result. */
export function textOfResult(result: {
  data?: unknown;
  errors?: readonly GraphQLError[] | undefined;
  stringify?: () => string;
}): string {
  if (result.stringify) return result.stringify();
  return JSON.stringify(result.errors ? { ...result, errors: result.errors.map(formatted) } : result);
}

/** Returns an error in the form in which it is sent, without the `http` extension that only the HTTP layer reads. */
export function formatted(error: GraphQLError): GraphQLFormattedError {
  const { extensions, ...members } = error.toJSON();
  const { http: _http, ...shown } = extensions ?? {};
  return Object.keys(shown).length > 0 ? { ...members, extensions: shown } : members;
}

function withoutQuotes(error: GraphQLError): GraphQLError {
  const message = withoutValues(error.message);
  return message === error.message
    ? error
    : new GraphQLError(message, { ...placeOf(error), extensions: error.extensions });
}
