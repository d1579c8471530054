/** An invalid member of the input: its path, and what to change. */
export interface Issue {
  path: string | readonly string[];
  message: string;
}

export type ErrorDetails = Pick<PortcullisError, 'status' | 'code'> & Partial<Omit<PortcullisError, keyof Error>>;

/** A request failed: the gateway rejected it, or there is no response (NoResponseError). */
export class PortcullisError extends Error {
  /** The HTTP status; 200 for an error in a GraphQL response, 0 without a response. */
  declare readonly status: number;
  /** The code to decide by: `message` of a REST error (`duplicate_email`), `extensions.code` of a GraphQL error. */
  declare readonly code: string;
  declare readonly issues: readonly Issue[];
  /** Identifies the request in the gateway's logs and audit records. */
  declare readonly correlationId: string | undefined;
  /** Seconds after which the gateway accepts a repetition. */
  declare readonly retryAfter: number | undefined;
  /** The permission that the token lacks; several are separated by spaces. */
  declare readonly permission: string | undefined;
  /**
   * Whether the gateway may have executed the write: it failed after that was begun, or the response of this or an earlier
   * attempt was lost. False for requests that read, and if none was sent.
   */
  declare readonly mayHaveBeenApplied: boolean;
  /** The key of the write: repeating the request with it is safe. Without one, read the state before you repeat it. */
  declare readonly idempotencyKey: string | undefined;

  constructor(message: string, details: ErrorDetails) {
    super(message);
    Object.assign(this, { issues: [], mayHaveBeenApplied: false }, details, { name: new.target.name });
  }
}

/**
 * There is no response. The code says why: `no_response` if the gateway cannot be reached or the connection broke,
 * `timeout`, or `aborted` by the signal of a write that was sent. The cause is the error of `fetch`, or the signal's reason.
 */
export class NoResponseError extends PortcullisError {
  constructor(cause: unknown, code: 'no_response' | 'timeout' | 'aborted') {
    super(`${code}: ${Object(cause).message ?? cause}`, { status: 0, code });
    this.cause = cause;
  }
}

/** The object does not exist, or belongs to another tenant. */
export class NotFoundError extends PortcullisError {}

/** The object has another version than `ifMatch` names. */
export class PreconditionFailedError extends PortcullisError {}

/** A rate limit or the monthly quota was exceeded, and `retryAfter` is longer than the client waits. */
export class RateLimitedError extends PortcullisError {}

/** The updates after the cursor are no longer stored: read the state by a query, then follow without `after`. */
export class CursorExpiredError extends PortcullisError {}

const CLASSES: Readonly<Record<string, typeof PortcullisError>> = {
  404: NotFoundError,
  NOT_FOUND: NotFoundError,
  412: PreconditionFailedError,
  429: RateLimitedError,
  RATE_LIMITED: RateLimitedError,
  CURSOR_EXPIRED: CursorExpiredError,
};

/** Creates the error of the class that belongs to the code or the status. */
export function errorOf(message: string, details: ErrorDetails): PortcullisError {
  const name = [details.code, String(details.status)].find((key) => Object.hasOwn(CLASSES, key)) ?? '';
  return new (CLASSES[name] ?? PortcullisError)(message, details);
}
