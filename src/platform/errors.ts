import type { z } from 'zod';

/** Why a change was not made, in the domain's words; each adapter renders it in its own. */
export type Refusal =
  | { kind: 'not_found' }
  | { kind: 'forbidden'; permission: string; message: string }
  | { kind: 'duplicate'; reason: string; message: string }
  | { kind: 'precondition'; message: string }
  | { kind: 'invalid'; path: string; message: string };

/** Thrown by a domain service that refuses. Nothing was changed. */
export class RefusalError extends Error {
  override name = 'RefusalError';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.kind === 'not_found' ? 'not found' : refusal.message);
    this.refusal = refusal;
  }
}

/** Makes the refusal of an id that names nothing of the tenant: missing and another tenant's are one and the same. */
export function notFoundRefusal(): RefusalError {
  return new RefusalError({ kind: 'not_found' });
}

/** Returns the issues of a failed parse, with paths as `users[3].email`. */
export function issuesOf(error: z.ZodError): Issue[] {
  return error.issues.map((issue) => ({ path: pathText(issue.path), message: issue.message }));
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}

/** What was wrong with one member of an input: `path` as `users[3].email`, empty for the whole body. */
export interface Issue {
  path: string;
  message: string;
}

/** The message identifiers of the error envelope (specification sections 2.3 and 7). */
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
  /** Named members of the input, shown where the envelope may carry them. */
  issues?: Issue[];
  /** Response headers, in the spelling they are sent in. */
  headers?: Record<string, string>;
  /** The fault behind it: logged, never sent. */
  cause?: unknown;
}

/** A refusal with a documented status and message. Rendered once per protocol. */
export class AppError extends Error {
  override name = 'AppError';
  readonly status: number;
  override readonly message: ErrorMessage;
  readonly issues: Issue[] | undefined;
  readonly headers: Record<string, string>;

  constructor(status: number, message: ErrorMessage, details: AppErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.status = status;
    this.message = message;
    this.issues = details.issues;
    this.headers = details.headers ?? {};
  }
}

/** 400: malformed or invalid input; the issues say what to change. */
export function invalidRequest(issues?: Issue[]): AppError {
  return new AppError(400, 'invalid_request', issues ? { issues } : {});
}

/** 401: no bearer token was shown (RFC 6750 section 3.1). */
export function noToken(): AppError {
  return new AppError(401, 'unauthorized', { headers: { 'WWW-Authenticate': 'Bearer' } });
}

/** 403; of permissions (RFC 6749 scope tokens) that the token lacks it names them (RFC 6750 section 3.1). */
export function forbidden(missing: readonly string[] = []): AppError {
  if (missing.length === 0) return new AppError(403, 'forbidden');
  const value = `Bearer error="insufficient_scope", scope="${missing.join(' ')}"`;
  return new AppError(403, 'forbidden', { headers: { 'WWW-Authenticate': value } });
}

/** 404: not registered, missing, or of another tenant: the same bytes. */
export function notFound(): AppError {
  return new AppError(404, 'not_found');
}

/** 413: the body is over its limit, and what is left of it is not read. */
export function payloadTooLarge(): AppError {
  return new AppError(413, 'payload_too_large', { headers: { Connection: 'close' } });
}

/** 503: a store that the request needs is down, or a queue is full. */
export function serviceUnavailable(cause?: unknown): AppError {
  return new AppError(503, 'service_unavailable', { headers: { 'Retry-After': '1' }, cause });
}

/** 504: what the request waits for takes too long. */
export function gatewayTimeout(cause?: unknown): AppError {
  return new AppError(504, 'gateway_timeout', { cause });
}

/** The documented error body (specification section 2.3); `errors` stands beside a 400 outside the token endpoint. */
export interface ErrorEnvelope {
  code: -1;
  domain: 0;
  message: string;
  errors?: Issue[];
}

/** Returns the envelope of a refusal. */
export function errorEnvelope(error: AppError): ErrorEnvelope {
  const envelope: ErrorEnvelope = { code: -1, domain: 0, message: error.message };
  return error.issues ? { ...envelope, errors: error.issues } : envelope;
}

/** A start that cannot be for a reason outside of the configuration, such as a port in use. Exit 1. */
export class StartError extends Error {
  override name = 'StartError';
}
