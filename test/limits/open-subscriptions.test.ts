import { beforeAll, describe, expect, it, vi } from 'vitest';
import { OpenSubscriptions } from '../../src/api/graphql/execution/engine.ts';
import { usePortcullis } from '../support/harness.ts';
import { overSse } from '../support/realtime/live.ts';

const MOST = 256 * 1024 * 1024;
const OWN = 16 * 1024;

describe('what the open subscriptions of a tenant take', () => {
  it('D6-24: is limited, and what has ended no longer counts', () => {
    const subscriptions = new OpenSubscriptions();
    const closes = Array.from({ length: MOST / OWN }, () => subscriptions.open('one', 0));
    expect(() => subscriptions.open('one', 0)).toThrow(
      'the open subscriptions of this tenant use too much memory: end some, or use shorter documents',
    );
    subscriptions.open('another', 0);
    closes[0]?.();
    closes[0]?.();
    subscriptions.open('one', 0);
    expect(() => subscriptions.open('one', 0)).toThrow(/use too much/);
    // The document and the variables count.
    subscriptions.open('third', (MOST - OWN) / 2);
    expect(() => subscriptions.open('third', 0)).toThrow(/use too much/);
  });
});

describe('a subscription over the service', () => {
  const p = usePortcullis();
  let token: string;
  beforeAll(async () => {
    token = await p.loginToken();
  });

  it('D6-24: that its tenant has no room for is LIMIT_EXCEEDED; another is opened once one has ended', async () => {
    const open = vi.spyOn(OpenSubscriptions.prototype, 'open');
    await using live = await overSse(p, { token });
    expect(open.mock.calls).toEqual([[p.demo.node_id, expect.any(Number)]]);
    const [subscriptions] = open.mock.contexts as OpenSubscriptions[];
    const fill = () => subscriptions?.open(p.demo.node_id, (MOST - 2 * OWN) / 2 - 4_000);
    const empty = fill();
    const query = 'subscription { transactionUpdates { cursor } }';
    const refused = await p.call('POST', '/graphql', {
      token,
      json: { query },
      headers: { accept: 'text/event-stream' },
    });
    expect(refused.text).toContain('"code":"LIMIT_EXCEEDED"');
    empty?.();
    await live[Symbol.asyncDispose]();
    await vi.waitFor(() => subscriptions?.open(p.demo.node_id, (MOST - OWN) / 2)());
  });
});
