import { PassThrough } from 'node:stream';
import { afterEach, expect, it, vi } from 'vitest';
import type { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { readBytes } from '../../src/gateway/exchange/exchange.ts';

afterEach(() => vi.useRealTimers());

function read(req: PassThrough): Promise<Buffer> {
  const exchange = { req: Object.assign(req, { headers: {} }), res: {}, audit: {}, found: {} } as unknown as Exchange;
  return readBytes(exchange, 10, () => expect.fail());
}

it('D2-13: a body that is not complete after five minutes gets a 400 that says so', async () => {
  vi.useFakeTimers();
  const [slow, quick] = [new PassThrough(), new PassThrough()];
  const refused = expect(read(slow)).rejects.toMatchObject({
    code: 'invalid_request',
    details: { issues: [{ path: '', message: 'must arrive within five minutes' }] },
  });
  const body = read(quick);
  slow.write('a');
  quick.end('b');
  await vi.advanceTimersByTimeAsync(299_999);
  expect(String(await body)).toBe('b');
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  await refused;
});

it.each(['before it is read', 'while it is read'])(
  'D2-13: a body aborted by its client %s is no longer waited for, and nothing of it is kept',
  async (when) => {
    vi.useFakeTimers();
    const given = new PassThrough();
    given.write('a');
    if (when === 'before it is read') given.destroy();
    void read(given);
    given.destroy();
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
  },
);
