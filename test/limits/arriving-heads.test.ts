import { afterEach, expect, it, vi } from 'vitest';
import { openSocket, request } from '../support/gateway/raw.ts';
import { usePortcullis } from '../support/harness.ts';

const HEAD_BYTES = 100_000;
const p = usePortcullis();
const memory = () => p.service.context.memory;
const limits: { totalBytes?: number } = {};
afterEach(() => {
  memory().limits.totalBytes = limits.totalBytes ?? memory().limits.totalBytes;
});

/** A connection that has sent the beginning of a head. */
function slowHead() {
  const socket = openSocket(p.url).on('error', () => undefined);
  socket.write(
    `GET /health HTTP/1.1\r\nHost: gateway\r\n${`X-Filler: ${'x'.repeat(990)}\r\n`.repeat(HEAD_BYTES / 1_000)}`,
  );
  return socket;
}

it('D6-25: incomplete request heads are charged to unidentified callers, and released on completion or disconnect', async () => {
  const [completed, left] = [slowHead(), slowHead()];
  await vi.waitFor(() => expect(memory().held('unidentified')).toBeGreaterThan(2 * HEAD_BYTES), { timeout: 10_000 });
  completed.write('Connection: keep-alive\r\n\r\n');
  left.destroy();
  await vi.waitFor(() => expect(memory().bytes).toBe(0), { timeout: 10_000 });
  expect(completed.destroyed).toBe(false);
  completed.destroy();
});

it('D6-25: when incomplete heads exceed the total, the newest connections are closed; a known client is served', async () => {
  limits.totalBytes ??= memory().limits.totalBytes;
  memory().limits.totalBytes = 10 * HEAD_BYTES;
  const sockets = Array.from({ length: 30 }, slowHead);
  await vi.waitFor(() => expect(sockets.filter(({ closed }) => closed).length).toBeGreaterThan(20), {
    timeout: 10_000,
  });
  expect(memory().bytes).toBeLessThanOrEqual(10 * HEAD_BYTES);
  expect(
    (await p.call('POST', '/graphql', { token: await p.clientToken(), json: { query: '{ me { nodeId } }' } })).status,
  ).toBe(200);
  for (const socket of sockets) socket.destroy();
});

it('D6-25: a body is not charged as a head, and the head after it is', async () => {
  const socket = openSocket(p.url).on('error', () => undefined);
  socket.write(
    `${request('POST', '/v2/oauth/token', { 'Content-Type': 'application/json', 'Content-Length': '40000', Connection: 'keep-alive' })}${' '.repeat(39_999)}`,
  );
  await vi.waitFor(() => expect(memory().held('authentication')).toBeGreaterThan(79_000), { timeout: 5_000 });
  expect(memory().held('unidentified')).toBe(0);
  socket.write(` GET /health HTTP/1.1\r\nX-Filler: ${'x'.repeat(20_000)}`);
  await vi.waitFor(
    () => expect([memory().held('authentication'), memory().held('unidentified') > 20_000]).toEqual([0, true]),
    { timeout: 10_000 },
  );
  socket.destroy();
  await vi.waitFor(() => expect(memory().bytes).toBe(0), { timeout: 5_000 });
});
