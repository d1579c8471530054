import { describe, expect, it } from 'vitest';
import { admit, type Circuit, CLOSED, type Outcome, settle } from '../../src/gateway/endpoints/breaker.rules.ts';
import { type FailedAttempt, mayRetry } from '../../src/gateway/proxy/forwarding.ts';

const SETTINGS = { failures: 3, openMs: 1_000 };
const OPEN: Circuit = { kind: 'open', untilMs: 5_000 };
const HALF_OPEN: Circuit = { kind: 'half_open', isTrying: false };
const TRYING: Circuit = { kind: 'half_open', isTrying: true };

const admissions: [circuit: Circuit, nowMs: number, admitted: boolean | 'trial', retryAfterMs?: number][] = [
  [CLOSED, 0, true],
  [{ kind: 'closed', failures: 2 }, 0, true],
  [OPEN, 0, false, 5_000],
  [OPEN, 4_999, false, 1],
  [OPEN, 5_000, 'trial'],
  [HALF_OPEN, 0, 'trial'],
  [TRYING, 9_000, false, 1_000],
];

describe('a circuit', () => {
  it.each(admissions)('D2-10: %j at %i admits: %s', (circuit, nowMs, admitted, retryAfterMs) => {
    const admission = admit(circuit, nowMs);
    expect(admission).toEqual(
      admitted === false
        ? { isAdmitted: false, retryAfterMs }
        : { isAdmitted: true, isTrial: admitted === 'trial', circuit: admitted === 'trial' ? TRYING : circuit },
    );
  });

  const closed = (failures: number): Circuit => ({ kind: 'closed', failures });
  const opened: Circuit = { kind: 'open', untilMs: 2_000 };
  const settlements: [circuit: Circuit, outcome: Outcome, isTrial: boolean, after: Circuit][] = [
    [closed(0), 'answered', false, closed(0)],
    [closed(0), 'failed', false, closed(1)],
    [closed(1), 'failed', false, closed(2)],
    [closed(2), 'failed', false, opened],
    [closed(2), 'answered', false, closed(0)],
    [closed(2), 'unknown', false, closed(2)],
    [OPEN, 'answered', false, OPEN],
    [OPEN, 'failed', false, OPEN],
    [TRYING, 'answered', false, TRYING],
    [TRYING, 'failed', false, TRYING],
    [TRYING, 'answered', true, closed(0)],
    [TRYING, 'failed', true, opened],
    [TRYING, 'unknown', true, HALF_OPEN],
  ];

  it.each(settlements)('D2-10: %j after one that %s (a trial: %s) is %j', (circuit, outcome, isTrial, after) => {
    expect(settle(circuit, { outcome, isTrial }, 1_000, SETTINGS)).toEqual(after);
  });
});

describe('a request is sent again', () => {
  const attempts: [name: string, FailedAttempt, boolean][] = [
    ['nothing was sent', { attempt: 1, wasSent: false }, true],
    ['something was sent', { attempt: 1, wasSent: true }, false],
    ['nothing was sent, twice', { attempt: 2, wasSent: false }, false],
    ['something was sent the second time', { attempt: 2, wasSent: true }, false],
  ];

  it.each(attempts)('D2-10: where %s: %s', (_name, attempt, again) => {
    expect(mayRetry(attempt)).toBe(again);
  });
});
