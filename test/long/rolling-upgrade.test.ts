import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rollingUpgrade, underFault } from '../support/faults/faults.ts';
import { NOTHING_AMISS, READERS } from '../support/faults/findings.ts';
import { type Lab, startLab } from '../support/faults/lab.ts';
import { describeReal } from '../support/services/real.ts';

/** A part of what the machine bears. */
const PACE = { restMs: 200 };
/** The source of the last release with its packages, which .ci/last-release makes. */
const { RELEASE_TREE: tree } = process.env;

function upgradeTests(): void {
  let lab: Lab;
  beforeAll(async () => {
    lab = await startLab(['gateway', 'gateway', 'worker'], { partitions: 3, tree });
  });
  afterAll(() => lab?.[Symbol.asyncDispose]());

  it('D1-13 D6-10 D6-16 D6-18: a rolling upgrade from the last release fails no request, and loses or repeats nothing', async () => {
    const { amiss, answers, returns, users, acknowledged } = await underFault(lab, rollingUpgrade, PACE);
    expect(amiss).toEqual(NOTHING_AMISS);
    // A connection that is idle may be closed as its client begins to use it.
    const { 200: _told, 201: _made, unanswered: _reconnects, ...failed } = answers;
    expect(failed).toEqual({});
    expect(returns).toBeGreaterThanOrEqual(READERS);
    expect(Math.min(users, acknowledged)).toBeGreaterThan(0);
  });
}

if (tree === undefined) describe.skip('a rolling upgrade [no RELEASE_TREE: .ci/last-release makes one]', upgradeTests);
else describeReal(['postgres', 'redis', 'kafka'], 'replicas of the last release and of this version', upgradeTests);
