import { beforeAll, expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startOnRealServers, startReplica } from '../support/harness.ts';
import {
  countedWakeUps,
  hasGot,
  type Live,
  logAtOnce,
  loggedSoon,
  notify,
  overSocket,
  overSse,
  registered,
} from '../support/realtime/live.ts';
import { describeReal } from '../support/services/real.ts';

const TRANSACTIONS = 8;
const EVENTS = 2 * TRANSACTIONS;
/** More than a page of a replay, and not a multiple of it. */
const OLDER = 617;

describeReal(['postgres', 'redis', 'kafka'], 'when every wake-up is lost', () => {
  const near = countedWakeUps({ dropped: true });
  const far = countedWakeUps({ dropped: true });
  const p = beforeTests(() => startOnRealServers({ overrides: { streams: near.streams } }));
  const replica = beforeTests(() => startReplica(p, { overrides: { streams: far.streams } }));
  let token: string;

  beforeAll(async () => {
    token = await p.clientToken();
  });

  it('D6-10: subscribers on two replicas get each event once and in order, by polling the log', async () => {
    const open: Live[] = [];
    await using stack = new AsyncDisposableStack();
    const live = async (subscribing: Promise<Live>) => {
      open.push(stack.use(await subscribing));
    };
    for (const at of [p, replica]) {
      await live(overSse(at, { token }));
      await live(overSse(at, { token, after: '0' }));
      await live(overSocket(at, { token }));
    }
    const ids = await registered(p, TRANSACTIONS);
    await Promise.all(ids.map((id) => notify(p, id, 2)));
    // One who comes while events come.
    await live(overSocket(replica, { token, after: '0' }));
    await Promise.all(ids.map((id) => notify(replica, id, 3)));
    const cursors = await loggedSoon(p, EVENTS);
    for (const subscriber of open) await hasGot(subscriber, cursors);
    expect(open).toHaveLength(7);
    expect(Math.min(near.counted.arrived, far.counted.arrived)).toBeGreaterThan(0);
  });

  it('D6-14: "0" replays every kept event, page by page, on each replica', async () => {
    await logAtOnce(p, OLDER);
    const cursors = await loggedSoon(p, EVENTS + OLDER);
    for (const replayed of [overSse(p, { token, after: '0' }), overSocket(replica, { token, after: '0' })]) {
      await using subscriber = await replayed;
      await hasGot(subscriber, cursors);
    }
  });
});
