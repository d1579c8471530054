/** What is known of an attempt that failed before any of its answer came. */
export interface FailedAttempt {
  /** From 1. */
  attempt: number;
  method: string;
  hasBody: boolean;
  /** Whether any byte of the request was handed to a connection. */
  wasSent: boolean;
  /** Whether that connection had carried an answer before. */
  wasReused: boolean;
}

const MAX_ATTEMPTS = 2;

/** RFC 9110 section 9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/**
 * Whether a failed request is sent again: once, where nothing was sent, or where a kept connection turned out to be closed
 * and the request may be repeated (RFC 9112 section 9.3.1). Nothing that an upstream may have begun to do is done twice.
 */
export function mayRetry({ attempt, method, hasBody, wasSent, wasReused }: FailedAttempt): boolean {
  if (attempt >= MAX_ATTEMPTS) return false;
  if (!wasSent) return true;
  return wasReused && !hasBody && IDEMPOTENT.has(method);
}
