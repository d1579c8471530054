/** When a circuit opens, and for how long nothing is sent. */
export interface BreakerSettings {
  /** Failures in a row. */
  failures: number;
  openMs: number;
}

/**
 * A circuit. Closed: requests are sent, failures in a row are counted. Open: nothing is sent. Half open: one request at a
 * time tries; its outcome closes the circuit or opens it again.
 */
export type Circuit =
  | { kind: 'closed'; failures: number }
  | { kind: 'open'; untilMs: number }
  | { kind: 'half_open'; isTrying: boolean };

/** How a request that was let through ended, as far as it tells something of the upstream. */
export type Outcome = 'answered' | 'failed' | 'unknown';

export type Admission =
  | { isAdmitted: true; isTrial: boolean; circuit: Circuit }
  | { isAdmitted: false; retryAfterMs: number };

/** A caller that comes while another one tries is told to come again soon. */
const TRIAL_MS = 1_000;

export const CLOSED: Circuit = { kind: 'closed', failures: 0 };

/** Whether a request may be sent now. */
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
 * The circuit after a request has ended. Once it is no longer closed, only the one that tried is heard: the others were
 * sent before, and tell of the past. What ended by its client's doing tells nothing.
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
