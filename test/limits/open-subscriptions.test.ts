import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { REQUEST_BYTES } from '../../src/platform/held-memory.ts';
import { usePortcullis } from '../support/harness.ts';
import { overSocket, overSse } from '../support/realtime/live.ts';

const p = usePortcullis();
let token: string;
let totalBytes: number;
beforeAll(async () => {
  token = await p.loginToken();
  ({ totalBytes } = p.service.context.memory.limits);
});
afterEach(async () => {
  p.service.context.memory.limits.totalBytes = totalBytes;
  await vi.waitFor(() => expect(p.service.context.memory.bytes).toBe(0));
});

const held = () => p.service.context.memory.held(p.demo.node_id);
const QUERY = 'subscription { transactionUpdates { cursor } }';
const subscribe = (query: string) =>
  p.call('POST', '/graphql', { token, json: { query }, headers: { accept: 'text/event-stream' } });

describe('an open subscription', () => {
  it.each([
    ['server-sent events', overSse],
    ['a WebSocket', overSocket],
  ])('D6-25: a subscription over %s is charged to its tenant until it ends', async (_name, over) => {
    const live = await over(p, { token });
    const { memory } = p.service.context;
    expect(held()).toBeGreaterThan(REQUEST_BYTES);
    expect(memory.bytes).toBe(held());
    await live[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(held()).toBe(0));
  });

  it('D6-25 D6-24: a subscription beyond the memory of its tenant is LIMIT_EXCEEDED until another one ends', async () => {
    const { memory } = p.service.context;
    await using live = await overSse(p, { token });
    // Room for the body and its values, and not for what the subscription holds of them.
    memory.limits.totalBytes = held() + 60_000;
    const refused = await subscribe(`${QUERY} # ${'x'.repeat(12_000)}`);
    expect(refused.text).toContain('"code":"LIMIT_EXCEEDED"');
    await live[Symbol.asyncDispose]();
    await using _again = await overSse(p, { token });
    expect(held()).toBeGreaterThan(0);
  });

  it('D6-25: a subscription ends with SERVICE_UNAVAILABLE when another account needs its memory', async () => {
    const { memory } = p.service.context;
    const asked = subscribe(QUERY);
    // Before, its request alone would be refused.
    await vi.waitFor(() => expect(p.service.context.streams.load.streams).toBe(1));
    memory.limits.totalBytes = held() + 10;
    const other = memory.open(p.demo.other_node.node_id);
    other.charge(20);
    expect((await asked).text).toContain('"code":"SERVICE_UNAVAILABLE"');
    expect([held(), other.refusal]).toEqual([0, undefined]);
    other.end();
  });
});
