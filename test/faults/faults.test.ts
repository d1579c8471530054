import { expect, inject, it } from 'vitest';
import { type Cluster, startCluster } from '../support/faults/cluster.ts';
import { killed, rollingRestartOf, underFault } from '../support/faults/faults.ts';
import { NOTHING_AMISS, READERS } from '../support/faults/findings.ts';
import { sharedStores } from '../support/faults/shared-stores.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { describeReal } from '../support/services/real.ts';

/** A part of what the machine bears; test/long/faults.test.ts has all of it. */
const PACE = { restMs: 2_000, transactions: 1_000 };
/** How many of the two replicas are restarted. */
const RESTARTS = inject('isThorough') ? 2 : 1;

/** What a machine does that stands still for as long as a notification waits; no restart does it. */
const SLOW_BROKER = 'no acknowledgement in time';
/** What a client does that stands still for a second in the middle of a body. */
const SLOW_CLIENT = 'the body stopped arriving while the process stops';

/** Why requests failed, by what the processes logged of their correlation ids. */
function causesOf({ replicas }: Cluster, correlationIds: readonly string[]): string[] {
  const lines = replicas.flatMap((replica) => replica.log().split('\n'));
  const said = (message: string) =>
    lines.filter((line) => line.includes(`"msg":"${message}"`)).map((line) => JSON.parse(line));
  const [failures, requests] = [said('request failed'), said('request')];
  // While the bus is unavailable, its first failure is logged, and the others are counted.
  const outage = failures.find(({ store }) => store === 'bus');
  return correlationIds.map((id) => {
    const own = (line: { correlation_id?: string }) => line.correlation_id === id;
    const refused = requests.find(own)?.reason;
    const failure = failures.find(own) ?? (refused === undefined ? outage : undefined);
    return failure?.err.message ?? refused ?? `nothing was logged of ${id}`;
  });
}

describeReal(['postgres', 'redis', 'kafka'], 'replicas under load', () => {
  const cluster = beforeTests(() => startCluster(['all', 'all'], { partitions: 3, stores: sharedStores }));

  it('D6-10 D6-16 D6-18: when a replica is killed, each acknowledged notification is applied once and every reader sees each change once', async () => {
    const { amiss, answers } = await underFault(cluster, killed('all', 0), PACE);
    expect(amiss).toEqual(NOTHING_AMISS);
    expect(answers).toHaveProperty('200');
  });

  it('D1-13 D6-10: a rolling restart fails no request, and no reader misses an event', async () => {
    const { amiss, answers, journal, returns } = await underFault(cluster, rollingRestartOf(RESTARTS), PACE);
    expect(amiss).toEqual(NOTHING_AMISS);
    // A connection that is idle may be closed as its client begins to use it.
    const { 200: _told, 201: _made, 500: _seeCauses, unanswered: _reconnects, ...others } = answers;
    expect(others).toEqual({});
    expect(causesOf(cluster, journal.failed).filter((cause) => ![SLOW_BROKER, SLOW_CLIENT].includes(cause))).toEqual(
      [],
    );
    // The readers begin at the two replicas by turns.
    expect(returns).toBeGreaterThanOrEqual(RESTARTS === 2 ? READERS : Math.ceil(READERS / 2));
  });
});
