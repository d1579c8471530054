/**
 * The state of a circuit breaker. Closed: requests are sent, and failures since the last response are counted. Open:
 * nothing is sent. Half open: requests are sent on trial, until their outcomes close or open the circuit breaker.
 */
export type Circuit =
  | { kind: 'closed'; failures: Failures }
  | { kind: 'open'; untilMs: number }
  | { kind: 'half_open'; failures: Failures; trying: readonly string[] };

/**
 * Failures since the last response. Failures to connect count. What one client met alone may be due to its requests, so
 * broken connections and timeouts count once two clients have met them.
 */
interface Failures {
  connecting: number;
  otherFailures: number;
  /** The clients that met the others: the first two. */
  clients: readonly string[];
}

/**
 * What the outcome of a request says about the upstream: it responded, in whatever way; it could not be reached; the
 * connection broke or the time was up before anything of a response arrived; or nothing.
 */
export type Outcome = 'answered' | 'unreachable' | 'broken' | 'unknown';

export type Admission =
  | { isAdmitted: true; isTrial: boolean; circuit: Circuit }
  | { isAdmitted: false; retryAfterMs: number };

/** The value of `Retry-After` for requests refused during a trial, in ms. */
const TRIAL_MS = 1_000;
/** How many trials run at once, each of another client: one whose requests hang does not delay the trials of others. */
const MAX_TRIALS = 2;

const NONE: Failures = { connecting: 0, otherFailures: 0, clients: [] };

const UNTRIED: Extract<Circuit, { kind: 'half_open' }> = { kind: 'half_open', failures: NONE, trying: [] };

export const CLOSED: Circuit = { kind: 'closed', failures: NONE };

/** Decides whether a request of a client may be sent now, and returns the circuit breaker's next state. */
export function admit(circuit: Circuit, client: string, nowMs: number): Admission {
  if (circuit.kind === 'closed') return { isAdmitted: true, isTrial: false, circuit };
  if (circuit.kind === 'open' && nowMs < circuit.untilMs) {
    return { isAdmitted: false, retryAfterMs: circuit.untilMs - nowMs };
  }
  const { trying, failures } = circuit.kind === 'half_open' ? circuit : UNTRIED;
  if (trying.length >= MAX_TRIALS || trying.includes(client)) return { isAdmitted: false, retryAfterMs: TRIAL_MS };
  return { isAdmitted: true, isTrial: true, circuit: { kind: 'half_open', failures, trying: [...trying, client] } };
}

/**
 * Returns the circuit breaker's state after a client's request has ended. Unless the circuit breaker is closed, only
 * trials count: other requests were sent before it opened. The outcome `unknown`, as of a client that left, changes
 * nothing.
 */
export function settle(
  circuit: Circuit,
  { outcome, client, isTrial }: { outcome: Outcome; client: string; isTrial: boolean },
  nowMs: number,
  settings: {
    /** The number of failures without a response in between that open the circuit breaker. */
    failures: number;
    openMs: number;
  },
): Circuit {
  if (circuit.kind !== (isTrial ? 'half_open' : 'closed')) return circuit;
  if (outcome === 'answered') return CLOSED;
  const failures = plusFailure(circuit.failures, outcome, client);
  const count = failures.connecting + (failures.clients.length > 1 ? failures.otherFailures : 0);
  if (count >= (isTrial ? 1 : settings.failures)) return { kind: 'open', untilMs: nowMs + settings.openMs };
  return circuit.kind === 'closed'
    ? { kind: 'closed', failures }
    : { kind: 'half_open', failures, trying: circuit.trying.filter((trial) => trial !== client) };
}

function plusFailure(failures: Failures, outcome: Exclude<Outcome, 'answered'>, client: string): Failures {
  const { connecting, otherFailures, clients } = failures;
  if (outcome === 'unknown') return failures;
  return outcome === 'unreachable'
    ? { ...failures, connecting: connecting + 1 }
    : { connecting, otherFailures: otherFailures + 1, clients: [...new Set([...clients, client])].slice(0, 2) };
}
