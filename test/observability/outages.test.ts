import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { type Portcullis, startOnRealServers, startReplica } from '../support/harness.ts';
import { writtenLog } from '../support/observability/written-log.ts';
import { type FaultProxy, faultProxy } from '../support/services/fault-proxy.ts';
import { describeReal } from '../support/services/real.ts';

interface Line {
  level: number;
  msg: string;
  store?: string;
  topic?: string;
}

const WARN = 40;
const { log, lines } = writtenLog();
const told = () => lines.map((line): Line => JSON.parse(line));

describeReal(['postgres', 'redis', 'kafka'], 'the log of a process', () => {
  const stack = new AsyncDisposableStack();
  let p: Portcullis;
  let token: string;
  const ways: Partial<Record<'DATABASE_URL' | 'REDIS_URL', FaultProxy>> = {};

  beforeAll(async () => {
    const first = stack.use(await startOnRealServers({ overrides: { log } }));
    const env: Record<string, string> = {};
    for (const name of ['DATABASE_URL', 'REDIS_URL'] as const) {
      const url = first.env[name] ?? '';
      const way = stack.use(await faultProxy(Number(new URL(url).port)));
      ways[name] = way;
      env[name] = way.urlOf(url);
    }
    p = stack.use(await startReplica(first, { env, overrides: { log } }));
    token = await first.clientToken();
  });
  afterAll(async () => {
    for (const way of Object.values(ways)) way.set('passing');
    await stack.disposeAsync();
  });

  it.each([
    ['DATABASE_URL', 'database'],
    ['REDIS_URL', 'cache'],
  ] as const)('D8-16: has one line of an outage behind %s, however many requests fail', async (name, store) => {
    lines.length = 0;
    ways[name]?.set('cut');
    await vi.waitFor(() => expect(p.service.context.health.stores[store]).toBe('down'));
    const paths = Array.from({ length: 50 }, () => p.call('GET', `/v1/accounts?page=${randomUUID()}`, { token }));
    const sign = Array.from({ length: 50 }, () => p.clientToken().catch(() => undefined));
    await Promise.all([...paths, ...sign]);
    const bad = told().filter(({ level }) => level >= WARN);
    expect(bad.filter(({ store: about }) => about === store)).toHaveLength(1);
    // The loops in the background may have a line each; a hundred requests have none.
    expect(bad.length).toBeLessThan(10);
    ways[name]?.set('passing');
    await vi.waitFor(() => expect(p.service.context.health.stores[store]).toBe('ok'));
  });

  it('D8-16: has one line for a dead letter, with its place and its cause', async () => {
    lines.length = 0;
    const value = Buffer.from('no registration');
    await p.service.context.bus.publish([{ topic: TOPICS.registered, key: 'k', value, headers: {} }]);
    await vi.waitFor(() => expect(told().some(({ topic }) => topic === TOPICS.registered)).toBe(true));
    expect(told().filter(({ topic }) => topic === TOPICS.registered)).toEqual([
      expect.objectContaining({
        msg: 'could not apply a message; moved it to the dead letters',
        partition: expect.stringMatching(/^\d+$/),
        offset: '0',
        cause: expect.stringMatching(/^PoisonError: /),
      }),
    ]);
  });
});
