import { beforeAll, expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startOnSharedStores } from '../support/harness.ts';
import { hasGot, type Live, logAtOnce, loggedSoon, overSocket, overSse } from '../support/realtime/live.ts';
import { describeReal } from '../support/services/real.ts';

const BURST = 1_600;

describeReal(['postgres', 'redis'], 'a burst', () => {
  const p = beforeTests(startOnSharedStores);
  let token: string;

  beforeAll(async () => {
    token = await p.clientToken();
  });

  it('D6-19: subscribers that keep reading are not closed as slow when many events are logged at once', async () => {
    await using stack = new AsyncDisposableStack();
    const open: Live[] = [];
    for (const subscribe of [overSse, overSocket, overSse, overSocket])
      open.push(stack.use(await subscribe(p, { token })));
    await logAtOnce(p, BURST);
    const cursors = await loggedSoon(p, BURST);
    await Promise.race([Promise.all(open.map((one) => hasGot(one, cursors))), ...open.map(({ ended }) => ended)]);
    expect(open.map(({ errors }) => errors)).toEqual(open.map(() => []));
    for (const one of open) expect(one.cursors).toEqual(cursors);
  });
});
