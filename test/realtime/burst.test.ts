import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Portcullis, startOnRealServers } from '../harness.ts';
import { describeReal } from '../services/real.ts';
import { hasGot, type Live, loggedSoon, overSocket, overSse, registered } from './live.ts';

const BURST = 1_600;

describeReal(['postgres', 'redis', 'kafka'], 'a burst', () => {
  let p: Portcullis;
  let token: string;

  beforeAll(async () => {
    p = await startOnRealServers();
    token = await p.clientToken();
  });
  afterAll(() => p[Symbol.asyncDispose]());

  it('D6-19: whoever reads is not slow because much is logged at once', async () => {
    await using stack = new AsyncDisposableStack();
    const open: Live[] = [];
    for (const subscribe of [overSse, overSocket, overSse, overSocket])
      open.push(stack.use(await subscribe(p, { token })));
    const ids = await registered(p, BURST);
    const at = '2026-11-21T10:30:00Z';
    const deliveries = ids.map((id) => ({
      body: Buffer.from(JSON.stringify({ id, type: 1, status: 2, created_at: at, updated_at: at })),
      correlationId: 'burst',
    }));
    await p.service.context.transactions.applyBatch('transactions.user', deliveries);
    const cursors = await loggedSoon(p, BURST);
    await Promise.race([Promise.all(open.map((one) => hasGot(one, cursors))), ...open.map(({ ended }) => ended)]);
    expect(open.map(({ errors }) => errors)).toEqual(open.map(() => []));
    for (const one of open) expect(one.cursors).toEqual(cursors);
  });
});
