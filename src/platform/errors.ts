import type { z } from 'zod';
import { issuesIn } from '../lib/input.ts';

/** The reason why a domain service refused a change, in the domain's words; each interface renders it in its own. */
export type Refusal =
  | { kind: 'not_found' }
  | { kind: 'forbidden'; permission: string; message: string }
  | { kind: 'duplicate'; reason: string; message: string }
  | { kind: 'precondition'; message: string }
  | { kind: 'invalid'; path: string; message: string };

/** Thrown by a domain service that refuses a change. Nothing was changed. */
export class RefusalError extends Error {
  override name = 'RefusalError';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.kind === 'not_found' ? 'not found' : refusal.message);
    this.refusal = refusal;
  }
}

/**
 * Makes the refusal for an id that the tenant does not have; a missing id and another tenant's are indistinguishable.
 */
export function notFoundRefusal(): RefusalError {
  return new RefusalError({ kind: 'not_found' });
}

/**
 * Parses an input.
 * @throws AppError 400 that names each invalid member.
 */
export function parsed<Schema extends z.ZodType>(schema: Schema, given: unknown): z.output<Schema> {
  const result = schema.safeParse(given);
  if (!result.success) throw invalidRequest(issuesOf(result.error, given));
  return result.data;
}

/** Returns the issues of a failed parse of `given`, with paths such as `users[3].email`. */
export function issuesOf(error: z.ZodError, given: unknown): Issue[] {
  return issuesIn(error, given).map(({ path, message }) => ({ path: pathText(path), message }));
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}

/** One thing wrong with an input; `path` is such as `users[3].email`, and empty for the input as a whole. */
export interface Issue {
  path: string;
  message: string;
}

/** The values of `message` in the error envelope (specification sections 2.3 and 7). */
export type ErrorMessage =
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'ip_not_allowed'
  | 'mtls_required'
  | 'not_found'
  | 'method_not_allowed'
  | 'idempotency_conflict'
  | 'precondition_failed'
  | 'payload_too_large'
  | 'rate_limit_exceeded'
  | 'monthly_limit_exceeded'
  | 'internal_error'
  | 'bad_gateway'
  | 'service_unavailable'
  | 'gateway_timeout';

interface AppErrorDetails {
  /** The issues of the input, listed in the response if its format has a member for them. */
  issues?: Issue[];
  /** The headers of the error response, in the spelling in which they are sent. */
  headers?: Record<string, string>;
  /** The underlying error, which is logged but never sent. */
  cause?: unknown;
  /** The reason of a refusal for the log and the audit record; the caller does not get it. */
  reason?: string | undefined;
}

/** An error with a documented HTTP status and message, which each interface renders in its own format. */
export class AppError extends Error {
  override name = 'AppError';
  readonly status: number;
  override readonly message: ErrorMessage;
  readonly issues: Issue[] | undefined;
  readonly headers: Record<string, string>;
  readonly reason: string | undefined;

  constructor(status: number, message: ErrorMessage, details: AppErrorDetails = {}) {
    // A refusal is expected, and where it is made tells nothing: its stack would cost more than all else of it.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.status = status;
    this.message = message;
    this.issues = details.issues;
    this.headers = details.headers ?? {};
    this.reason = details.reason;
  }
}

/** Makes the error for malformed or invalid input (400); the issues say what to change. */
export function invalidRequest(issues?: Issue[]): AppError {
  return new AppError(400, 'invalid_request', issues ? { issues } : {});
}

/** The challenge of HTTP Basic, whose credentials are in UTF-8 (RFC 7617 section 2.1). */
export const BASIC_CHALLENGE = { 'WWW-Authenticate': 'Basic realm="portcullis", charset="UTF-8"' };

/** Makes the error for a request without a bearer token (401, RFC 6750 section 3.1). */
export function noToken(): AppError {
  return new AppError(401, 'unauthorized', { headers: { 'WWW-Authenticate': 'Bearer' } });
}

/**
 * Makes the error for a request that is not allowed (403). `missing` are the permissions that the token lacks; the
 * response names them as its `scope` (RFC 6750 section 3.1).
 */
export function forbidden(missing: readonly string[] = []): AppError {
  if (missing.length === 0) return new AppError(403, 'forbidden');
  const value = `Bearer error="insufficient_scope", scope="${missing.join(' ')}"`;
  return new AppError(403, 'forbidden', { headers: { 'WWW-Authenticate': value } });
}

/**
 * Makes the error for what is not registered, does not exist or belongs to another tenant (404); the response is the
 * same for all three. `reason` is for the log and the audit record alone.
 */
export function notFound(reason?: string): AppError {
  return new AppError(404, 'not_found', { reason });
}

/** Returns the issue of a body over its limit. */
export function tooLong(maxBytes: number): Issue {
  return { path: '', message: `must be at most ${maxBytes} bytes` };
}

/** Makes the error for a body over its limit: a 413, or a 400 that names the limit where senders know no 413. The rest of the body is not read, so the connection is closed. */
export function payloadTooLarge(maxBytes: number): AppError {
  return new AppError(413, 'payload_too_large', { issues: [tooLong(maxBytes)], headers: { Connection: 'close' } });
}

/** The error for a request whose rows, or whose response, would take too much memory (400). */
export class PageTooLargeError extends AppError {
  override name = 'PageTooLargeError';

  constructor(maxBytes: number) {
    const message = `its rows would take more than ${maxBytes / 1024 / 1024} MiB: ask for fewer rows, or for fewer lists at once`;
    super(400, 'invalid_request', { issues: [{ path: '', message }] });
  }
}

/** Makes the error for a request that finds a store down or a queue full (503). */
export function serviceUnavailable(cause?: unknown): AppError {
  return new AppError(503, 'service_unavailable', { headers: { 'Retry-After': '1' }, cause });
}

/** Makes the error for a request whose work takes too long (504). */
export function gatewayTimeout(cause?: unknown): AppError {
  return new AppError(504, 'gateway_timeout', { cause });
}

/** Checks whether an error refuses work that would be done at another time. */
export function isOverload(error: unknown): boolean {
  return error instanceof AppError && (error.status === 503 || error.status === 504);
}

/** The documented error body (specification section 2.3); only a 400 outside the token endpoint has `errors`. */
export interface ErrorEnvelope {
  code: -1;
  domain: 0;
  message: string;
  errors?: Issue[];
}

/** Returns the error envelope for an error. */
export function errorEnvelope(error: AppError): ErrorEnvelope {
  const envelope: ErrorEnvelope = { code: -1, domain: 0, message: error.message };
  return error.issues && error.status === 400 ? { ...envelope, errors: error.issues } : envelope;
}

/**
 * Thrown when a process cannot start for a reason outside its configuration, such as a port in use; it exits with 1.
 */
export class StartError extends Error {
  override name = 'StartError';
}

/** Thrown when the database refuses something to the user of `MIGRATE_DATABASE_URL`, with its error as the cause. */
export class OwnerError extends Error {
  override name = 'OwnerError';

  constructor(cause: unknown) {
    super(`MIGRATE_DATABASE_URL: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
