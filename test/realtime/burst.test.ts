import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Portcullis, startOnSharedStores } from '../support/harness.ts';
import { hasGot, type Live, logAtOnce, loggedSoon, overSocket, overSse } from '../support/realtime/live.ts';
import { describeReal } from '../support/services/real.ts';

const BURST = 1_600;

describeReal(['postgres', 'redis'], 'a burst', () => {
  let p: Portcullis;
  let token: string;

  beforeAll(async () => {
    p = await startOnSharedStores();
    token = await p.clientToken();
  });
  afterAll(() => p[Symbol.asyncDispose]());

  it('D6-19: whoever reads is not slow because much is logged at once', async () => {
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
