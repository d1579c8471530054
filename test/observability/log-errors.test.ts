import { createServer } from 'node:net';
import { afterAll, expect, it, vi } from 'vitest';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { startedDataDir } from '../support/harness.ts';
import { startInstance } from '../support/start/process.ts';

const SECRET = 'ZQXJKVZQXJKV';
const BODY = `{"password":"${SECRET}"}`;

/** What is wrong with a response, whose rest the parser attaches to its error. */
const RESPONSES: Record<string, string> = {
  '/header': `HTTP/1.1 200 OK\r\nBad Header: x\r\nSet-Cookie: sid=${SECRET}\r\n\r\n${BODY}`,
  '/chunked': `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${BODY}`,
  '/length': `HTTP/1.1 200 OK\r\nContent-Length: abc\r\nX-Key: ${SECRET}\r\n\r\n${BODY}`,
  '/headless': BODY,
};

const upstream = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.once('data', (head) => {
    const [, path = ''] = String(head).split(' ');
    socket.end(RESPONSES[path.replace('/ext', '')] ?? '');
  });
});
afterAll(() => void upstream.close());

it('D1-18: a logged upstream error does not contain the response of the upstream', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  upstream.listen(0, '127.0.0.1', resolve);
  await promise;
  const { port } = upstream.address() as { port: number };
  const endpoint = { path: '/ext/**', methods: ['GET'], visibility: 'public', services: ['ext'] };
  await using file = await gatewayFile({ ext: `http://127.0.0.1:${port}` }, [endpoint]);
  const env = { DATA_DIR: await startedDataDir(), GATEWAY_CONFIG: file.path, LOG_LEVEL: 'trace' };
  await using instance = await startInstance(env);
  for (const path of Object.keys(RESPONSES)) {
    const answer = await fetch(`${instance.baseUrl}/ext${path}`);
    expect(answer.status).toBe(path === '/chunked' ? 200 : 502);
    await answer.text().catch(() => undefined);
  }
  await vi.waitFor(() => expect(instance.stdout().match(/"msg":"request failed"/g)?.length).toBeGreaterThanOrEqual(3));
  expect(instance.stdout()).toContain('Invalid header token');
  expect(instance.stdout()).not.toContain(SECRET);
});
