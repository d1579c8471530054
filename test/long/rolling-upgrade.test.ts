import { describe, expect, it } from 'vitest';
import { startCluster } from '../support/faults/cluster.ts';
import { rollingUpgrade, underFault } from '../support/faults/faults.ts';
import { NOTHING_AMISS, READERS } from '../support/faults/findings.ts';
import { post, refresh, signIn, statusOf, type Tokens } from '../support/faults/signed-in.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { describeReal } from '../support/services/real.ts';

/** A part of what the machine bears. */
const PACE = { restMs: 200 };
/** The source of the last release with its packages, which .ci/last-release makes. */
const { RELEASE_TREE: tree } = process.env;

function upgradeTests(): void {
  const cluster = beforeTests(() => startCluster(['gateway', 'gateway', 'worker'], { partitions: 3, tree }));

  it('D1-13 D6-10 D6-16 D6-18: a rolling upgrade from the last release fails no request, and loses or repeats nothing', async () => {
    const { amiss, answers, returns, users, acknowledged } = await underFault(cluster, rollingUpgrade, PACE);
    expect(amiss).toEqual(NOTHING_AMISS);
    // A connection that is idle may be closed as its client begins to use it.
    const { 200: _told, 201: _made, unanswered: _reconnects, ...failed } = answers;
    expect(failed).toEqual({});
    expect(returns).toBeGreaterThanOrEqual(READERS);
    expect(Math.min(users, acknowledged)).toBeGreaterThan(0);
  });

  it('D1-13 D3-36: a session opened at either version is accepted by both until it is revoked', async () => {
    await using mixed = await startCluster(['gateway', 'gateway'], { partitions: 1, tree });
    await mixed.command(['migrate']);
    const [former, next] = mixed.replicas;
    if (!former || !next) throw new Error('there are two gateways');
    // The former version has its sessions in Redis before the next one signs anyone in.
    const first = await signIn(former, mixed);
    expect(await statusOf(former, first.access_token)).toBe(200);
    await next.stop();
    await next.upgrade();
    await next.ready();
    const statuses = ({ access_token }: Tokens) => Promise.all([former, next].map((at) => statusOf(at, access_token)));
    expect(await statuses(first)).toEqual([200, 200]);
    for (const at of [former, next]) {
      const tokens = await signIn(at, mixed);
      expect(await statuses(tokens)).toEqual([200, 200]);
      let latest = tokens;
      for (const other of [former, next]) {
        latest = await refresh(other, mixed, latest);
        expect(await statuses(latest)).toEqual([200, 200]);
      }
      await post(at, '/v2/oauth/revoke', { ...mixed.demo.client, token: latest.refresh_token });
      await expect.poll(() => statuses(latest), { interval: 50, timeout: 10_000 }).toEqual([401, 401]);
    }
    expect(await statuses(first)).toEqual([200, 200]);
  });
}

if (tree === undefined) describe.skip('a rolling upgrade [no RELEASE_TREE: .ci/last-release makes one]', upgradeTests);
else describeReal(['postgres', 'redis', 'kafka'], 'replicas of the last release and of this version', upgradeTests);
