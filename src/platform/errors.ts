import type { z } from 'zod';
import { issuesIn, isUuid } from '../lib/input.ts';

/** Why a request is refused, as an internal code; each interface maps the codes to its responses. */
export type RefusalCode =
  | 'invalid_request'
  | 'invalid_input'
  | 'page_too_large'
  | 'unauthorized'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'forbidden'
  | 'mtls_required'
  | 'ip_not_allowed'
  | 'not_found'
  | 'method_not_allowed'
  | 'not_acceptable'
  | 'idempotency_conflict'
  | 'duplicate'
  | 'precondition_failed'
  | 'payload_too_large'
  | 'rate_limit_exceeded'
  | 'monthly_limit_exceeded'
  | 'internal_error'
  | 'bad_gateway'
  | 'service_unavailable'
  | 'gateway_timeout';

/** What another object already has. */
export type DuplicateReason = `duplicate_${'id' | 'email' | 'external_id' | 'wallet' | 'username'}`;

interface RefusalDetails {
  /** The message for the caller of an interface that has room for one; the code by default. */
  message?: string;
  /** The issues of the input, listed in the response if its format has a member for them. */
  issues?: readonly Issue[];
  /** The permission that a change needs (`forbidden`). */
  permission?: string;
  /** The identifier that is taken, such as `duplicate_email` (`duplicate`). */
  taken?: DuplicateReason;
  /** How to authenticate: a challenge of HTTP Basic or a bearer token. */
  challenge?: string;
  retryAfterSeconds?: number;
  /** The underlying error, which is logged but never sent. */
  cause?: unknown;
  /** The reason for the log and the audit record; the caller does not get it. */
  reason?: string | undefined;
  /** Whom the request named in vain, for the log and the audit record: a supervisor, or a hash of another name. */
  subject?: string | undefined;
  /** Until when wrong passwords have locked that name, for the audit record. */
  lockedUntilMs?: number | undefined;
}

/** Thrown when a request is refused. Nothing was changed. */
export class Refusal extends Error {
  override name = 'Refusal';
  readonly code: RefusalCode;
  readonly details: Readonly<Omit<RefusalDetails, 'message' | 'cause'>>;

  constructor(code: RefusalCode, { message = code, cause, ...details }: RefusalDetails = {}) {
    // A refusal is expected, and where it is made tells nothing: its stack would cost more than all else of it.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, cause === undefined ? undefined : { cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.details = details;
  }
}

/**
 * Parses an input.
 * @throws Refusal `invalid_request` that names each invalid member.
 */
export function parseOrReject<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (!result.success) throw invalidRequest(issuesOf(result.error, value));
  return result.data;
}

/** Returns the issues of a failed parse of `value`, with paths such as `users[3].email`. */
export function issuesOf(error: z.ZodError, value: unknown): Issue[] {
  return issuesIn(error, value).map(({ path, message }) => ({
    path: path
      .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
      .join('')
      .replace(/^\./, ''),
    message,
  }));
}

/** One thing wrong with an input; `path` is such as `users[3].email`, and empty for the input as a whole. */
export interface Issue {
  path: string;
  message: string;
}

/**
 * Makes the refusal of a malformed or invalid request; the issues say what to change. The log names their members; it
 * has `reason` instead where a path may be a text of the caller.
 */
export function invalidRequest(issues: readonly Issue[], reason?: string): Refusal {
  return new Refusal('invalid_request', { issues, reason });
}

/** Makes the refusal of a value that is well-formed but not acceptable to the domain. */
export function invalidInput(path: string, message: string): Refusal {
  return new Refusal('invalid_input', { message, issues: [{ path, message }] });
}

/** The challenge of HTTP Basic, whose credentials are in UTF-8 (RFC 7617 section 2.1). */
export const BASIC_CHALLENGE = 'Basic realm="portcullis", charset="UTF-8"';

/** Makes the refusal of a request without a bearer token (RFC 6750 section 3.1). */
export function noToken(): Refusal {
  return new Refusal('unauthorized', { challenge: 'Bearer', reason: 'no_token' });
}

/**
 * Makes the refusal of a request whose token lacks permissions; the challenge names them as its `scope` (RFC 6750
 * section 3.1).
 */
export function forbidden(missing: readonly string[]): Refusal {
  const scope = missing.join(' ');
  const challenge = `Bearer error="insufficient_scope", scope="${scope}"`;
  return new Refusal('forbidden', { challenge, reason: `missing ${scope}` });
}

/**
 * Makes the refusal for an object that is not registered, does not exist or belongs to another tenant; the response is
 * the same for all three. `reason` is only for the log and the audit record.
 */
export function notFound(reason?: string): Refusal {
  return new Refusal('not_found', { message: 'not found', reason });
}

/**
 * Returns the value that was found.
 * @throws Refusal `not_found` for undefined.
 */
export function orNotFound<Found>(value: Found | undefined): Found {
  if (value === undefined) throw notFound();
  return value;
}

/**
 * Returns an id in lower case, as it is stored.
 * @throws Refusal `not_found` for a text that is no UUID, which nothing has as its id.
 */
export function idOrNotFound(text: string): string {
  if (!isUuid(text)) throw notFound();
  return text.toLowerCase();
}

/** Returns the issue of a body over its limit. */
export function tooLong(maxBytes: number): Issue {
  return { path: '', message: `must be at most ${maxBytes} bytes` };
}

/** Makes the refusal of a body over its limit. The rest of the body is not read, so the connection is closed. */
export function payloadTooLarge(maxBytes: number): Refusal {
  return new Refusal('payload_too_large', { issues: [tooLong(maxBytes)] });
}

/** Makes the refusal of a request whose rows, or whose response, would take too much memory. */
export function pageTooLarge(maxBytes: number): Refusal {
  const message = `its rows would take more than ${maxBytes / 1024 / 1024} MiB: request fewer rows or fewer lists at once`;
  return new Refusal('page_too_large', { message, issues: [{ path: '', message }] });
}

/** Makes the refusal of a request that finds a store down or a queue full. */
export function serviceUnavailable(cause?: unknown, retryAfterSeconds = 1): Refusal {
  return new Refusal('service_unavailable', { retryAfterSeconds, cause });
}

/** Makes the refusal of a request that cannot be recorded. */
export function auditSpoolFull(): Refusal {
  return new Refusal('service_unavailable', { retryAfterSeconds: 1, reason: 'the audit spool is full' });
}

/** Makes the refusal of a request whose work takes too long. */
export function gatewayTimeout(cause?: unknown): Refusal {
  return new Refusal('gateway_timeout', { cause });
}

/** Checks whether an error refuses work that would be done at another time. */
export function isOverload(error: unknown): boolean {
  return error instanceof Refusal && (error.code === 'service_unavailable' || error.code === 'gateway_timeout');
}

/**
 * Thrown when a process cannot start for a reason outside its configuration, such as a port in use; it exits with 1.
 */
export class StartError extends Error {
  override name = 'StartError';
}

/** Thrown when the database refuses something to the user of `MIGRATE_DATABASE_URL`, with its error as the cause. */
export class MigrationOwnerError extends Error {
  override name = 'MigrationOwnerError';

  constructor(cause: unknown) {
    super(`MIGRATE_DATABASE_URL: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** Returns the SQLSTATE of a database error from either driver, wrapped or not; undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  return textOf(error, 'code', /^[0-9A-Z]{5}$/);
}

/** The SQLSTATEs of a deadlock, a lock timeout, a value that a unique index has already, and one that refers to no row. */
export const DEADLOCK = '40P01';
export const LOCK_TIMEOUT = '55P03';
export const UNIQUE_VIOLATION = '23505';
const FOREIGN_KEY_VIOLATION = '23503';

/**
 * Writes a row that refers to another.
 * @throws Refusal `not_found` when there is no such other row, else what `write` throws.
 */
export async function withParent<Result>(write: () => Promise<Result>): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    throw sqlState(error) === FOREIGN_KEY_VIOLATION ? notFound() : error;
  }
}

/**
 * Checks whether the database or a constraint refused a value (SQLSTATE classes 22 and 23), or the value is over a limit of
 * PostgreSQL (class 54: too long for an index, for example), so that no retry helps.
 */
export function isRefusedValue(error: unknown): boolean {
  return /^(?:2[23]|54)/.test(sqlState(error) ?? '');
}

/** Matches the code of an error, or its message if it has none, by which Node, PostgreSQL and the driver say `isServerAway`. */
const AWAY =
  /^(?:E(?:CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_AGAIN)|08\w{3} |57P0|53300|25006| (?:connection terminated|timeout exceeded when trying to connect|client has encountered))/i;

/**
 * Checks whether an error says that the server is unavailable: it cannot be reached or was lost, is starting or stopping,
 * has no free connection, or accepts no writes.
 */
export function isServerAway(error: unknown): error is Error {
  return error instanceof Error && AWAY.test(`${'code' in error ? error.code : ''} ${error.message}`);
}

/** Matches the SQLSTATEs of a server that is away, full, changing or lacks a privilege, and of a conflict with others. */
const PASSING = /^(?:08|25|28|40|53|55|57|58|42501)/;

/** Checks whether the same work may succeed later, because a store or others were in the way. */
export function isTransient(error: unknown): boolean {
  const isOfStore = error instanceof Error && 'store' in error;
  return isOfStore || isOverload(error) || isServerAway(error) || PASSING.test(sqlState(error) ?? '');
}

/**
 * Returns the name of the constraint or unique index that a database error names, wrapped or not; undefined if none.
 */
export function violatedConstraint(error: unknown): string | undefined {
  return textOf(error, 'constraint', /^/);
}

/** Returns the first text that matches `form` in the named member of an error or of its causes; undefined if none. */
function textOf(error: unknown, member: string, form: RegExp): string | undefined {
  for (let current = error, depth = 0; typeof current === 'object' && current !== null && depth < 5; depth++) {
    const value: unknown = Reflect.get(current, member);
    if (typeof value === 'string' && form.test(value)) return value;
    current = 'cause' in current ? current.cause : undefined;
  }
  return undefined;
}
