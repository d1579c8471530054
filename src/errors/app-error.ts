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

/** Why a token whose signature holds is refused. */
export const TOKEN_EXPIRED = 'the token has expired';
export const TOKEN_REVOKED = 'the token has been revoked';
export const TOKEN_OF_ANOTHER_CLASS = 'the token is of another class';

/** 401: no bearer token was shown (RFC 6750 section 3.1). */
export function noToken(): AppError {
  return challenge('Bearer');
}

/** 401: the bearer token is refused (RFC 6750 section 3.1). Why is told of one whose signature holds, and of no other. */
export function unauthorized(why = 'the token is not valid'): AppError {
  return challenge(`Bearer error="invalid_token", error_description="${why}"`);
}

/** 403; of permissions (RFC 6749 scope tokens) that the token lacks it names them (RFC 6750 section 3.1). */
export function forbidden(missing: readonly string[] = []): AppError {
  if (missing.length === 0) return new AppError(403, 'forbidden');
  const value = `Bearer error="insufficient_scope", scope="${missing.join(' ')}"`;
  return new AppError(403, 'forbidden', { headers: { 'WWW-Authenticate': value } });
}

/** 404: not registered, missing, or of another node: the same bytes. */
export function notFound(): AppError {
  return new AppError(404, 'not_found');
}

/** 503: a part that the request needs is away, or its handler is still to come. */
export function serviceUnavailable(cause?: unknown): AppError {
  return new AppError(503, 'service_unavailable', { headers: { 'Retry-After': '1' }, cause });
}

/** 504: what the request waits for takes too long. */
export function gatewayTimeout(cause?: unknown): AppError {
  return new AppError(504, 'gateway_timeout', { cause });
}

function challenge(value: string): AppError {
  return new AppError(401, 'unauthorized', { headers: { 'WWW-Authenticate': value } });
}
