/** Settings of a circuit breaker: when it opens, and for how long. */
interface BreakerSettings {
  /** The number of consecutive failures that open the circuit breaker. */
  failures: number;
  openMs: number;
}

/**
 * The state of a circuit breaker. Closed: requests are sent, consecutive failures are counted. Open: nothing is sent.
 * Half open: one request at a time is sent on trial; its outcome closes or opens the circuit breaker.
 */
export type Circuit =
  | { kind: 'closed'; failures: number }
  | { kind: 'open'; untilMs: number }
  | { kind: 'half_open'; isTrying: boolean };

/** What the outcome of a request says about the upstream; `unknown` when it says nothing. */
export type Outcome = 'answered' | 'failed' | 'unknown';

export type Admission =
  | { isAdmitted: true; isTrial: boolean; circuit: Circuit }
  | { isAdmitted: false; retryAfterMs: number };

/** The value of `Retry-After` for requests refused during a trial, in ms. */
const TRIAL_MS = 1_000;

export const CLOSED: Circuit = { kind: 'closed', failures: 0 };

/** Decides whether a request may be sent now, and returns the circuit breaker's next state. */
export function admit(circuit: Circuit, nowMs: number): Admission {
  switch (circuit.kind) {
    case 'closed':
      return { isAdmitted: true, isTrial: false, circuit };
    case 'open':
      return nowMs < circuit.untilMs ? { isAdmitted: false, retryAfterMs: circuit.untilMs - nowMs } : trial();
    case 'half_open':
      return circuit.isTrying ? { isAdmitted: false, retryAfterMs: TRIAL_MS } : trial();
    default:
      return circuit satisfies never;
  }
}

/**
 * Returns the circuit breaker's state after a request has ended. Unless the circuit breaker is closed, only the trial
 * counts: other requests were sent before it opened. The outcome `unknown`, as of a client that left, changes nothing.
 */
export function settle(
  circuit: Circuit,
  { outcome, isTrial }: { outcome: Outcome; isTrial: boolean },
  nowMs: number,
  settings: BreakerSettings,
): Circuit {
  if (isTrial) {
    if (circuit.kind !== 'half_open') return circuit;
    if (outcome === 'unknown') return { kind: 'half_open', isTrying: false };
    return outcome === 'answered' ? CLOSED : { kind: 'open', untilMs: nowMs + settings.openMs };
  }
  if (circuit.kind !== 'closed' || outcome === 'unknown') return circuit;
  if (outcome === 'answered') return circuit.failures === 0 ? circuit : CLOSED;
  const failures = circuit.failures + 1;
  return failures < settings.failures
    ? { kind: 'closed', failures }
    : { kind: 'open', untilMs: nowMs + settings.openMs };
}

function trial(): Admission {
  return { isAdmitted: true, isTrial: true, circuit: { kind: 'half_open', isTrying: true } };
}
