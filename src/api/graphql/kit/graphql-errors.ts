import { GraphQLError, type GraphQLErrorOptions } from 'graphql';
import type { z } from 'zod';
import { InvalidTokenError } from '../../../access/identity/callers.ts';
import { CursorExpiredError, SlowConsumerError, StreamStoppedError } from '../../../events/streams/stream-errors.ts';
import { statusOf } from '../../../gateway/exchange/refusals.ts';
import { camelName } from '../../../lib/camel-name.ts';
import { type DuplicateReason, Refusal, type RefusalCode } from '../../../platform/errors.ts';

/** An invalid member of an input. The path starts at the root of the input, in camelCase. */
export interface InputIssue {
  path: string[];
  message: string;
}

/** The union member of mutations for an invalid input. */
export class ValidationError extends Error {
  override name = 'ValidationError';
  readonly issues: InputIssue[];

  constructor(issues: InputIssue[]) {
    super('the input is not valid');
    this.issues = issues;
  }
}

/** The union member of mutations for an id that the caller's tenant does not have. */
export class NotFoundError extends Error {
  override name = 'NotFoundError';

  constructor() {
    super('not found');
  }
}

/** The union member of mutations for a token that lacks a permission or may not be used for this particular change. */
export class ForbiddenError extends Error {
  override name = 'ForbiddenError';
  readonly permission: string;

  constructor(permission: string, message = `the permission ${permission} is missing`) {
    super(message);
    this.permission = permission;
  }
}

/** The union member of mutations for an identifier that is taken. */
export class DuplicateError extends Error {
  override name = 'DuplicateError';
  readonly reason: DuplicateReason;

  constructor(reason: DuplicateReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The union member of mutations for a state that does not allow the change. */
export class PreconditionError extends Error {
  override name = 'PreconditionError';
}

/** Returns the error `FORBIDDEN` of queries and subscriptions, which names the missing permission. */
export function forbiddenError(permission: string): GraphQLError {
  const { message } = new ForbiddenError(permission);
  return new GraphQLError(message, { extensions: { code: 'FORBIDDEN', permission } });
}

/** Returns the error `BAD_USER_INPUT` of queries and subscriptions, which lists the invalid arguments. */
export function badInputError(issues: InputIssue[]): GraphQLError {
  const message = issues.map(({ path, message: text }) => `${path.join('.')}: ${text}`).join('; ');
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', issues } });
}

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

/**
 * Returns the issues of a failed parse of all arguments. Paths into the argument `input` start at the root of that
 * input.
 */
export function inputIssues(error: z.ZodError): InputIssue[] {
  return error.issues.map(({ path, message }) => {
    const parts = path.map(String);
    return { path: parts[0] === 'input' ? parts.slice(1) : parts, message };
  });
}

/**
 * Returns the options that make the result of a mutation a union of it and its errors: `ValidationError`,
 * `NotFoundError`, `ForbiddenError` and these.
 */
export function errorsOf(description: string, ...types: (typeof DuplicateError | typeof PreconditionError)[]) {
  return { types, union: { description } };
}

/**
 * Awaits the result of a service. `context` is given for a mutation that takes an idempotency key.
 * @throws the union member that stands for its Refusal; other errors as they are.
 */
export async function orMember<Result>(
  work: Promise<Result>,
  context?: { caller: { isRefused: boolean } | undefined },
): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const member = error instanceof Refusal ? memberOf(error) : undefined;
    if (member && context?.caller) context.caller.isRefused = true;
    throw member ?? error;
  }
}

/** Returns the union member for a refusal by the domain; undefined for a refusal of the request as a whole. */
function memberOf({ code, message, details }: Refusal): Error | undefined {
  switch (code) {
    case 'not_found':
      return new NotFoundError();
    case 'forbidden':
      return new ForbiddenError(details.permission ?? '', message);
    case 'duplicate':
      return new DuplicateError(details.taken ?? 'duplicate_id', message);
    case 'precondition_failed':
      return new PreconditionError(message);
    case 'invalid_input':
      return new ValidationError(details.issues?.map(({ path }) => ({ path: [camelName(path)], message })) ?? []);
    default:
      return undefined;
  }
}
