/** What is known of an attempt that failed before any of its answer came. */
export interface FailedAttempt {
  /** From 1. */
  attempt: number;
  /** Whether any byte of the request was handed to a connection. */
  wasSent: boolean;
}

const MAX_ATTEMPTS = 2;

/** Whether a failed request is sent again: once, and only where nothing was sent. What may have begun is for its caller. */
export function mayRetry({ attempt, wasSent }: FailedAttempt): boolean {
  return attempt < MAX_ATTEMPTS && !wasSent;
}
