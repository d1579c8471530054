import { once } from 'node:events';
import { afterEach, expect, it } from 'vitest';
import { startUpstream } from '../support/gateway/forwarder.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { watched } from '../support/gateway/raw.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { basic } from '../support/webhook/fixture.ts';

const CONTENT = { 'content-type': 'application/json', 'content-length': '1000' };
const FORM = { 'content-type': 'multipart/form-data; boundary=b', 'content-length': '1000' };

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Sends a head and the first bytes of a body, and gives what comes back until the connection ends. */
async function begun(p: Portcullis, path: string, headers: Record<string, string>, first = '{') {
  const { socket, text: received } = watched(p.url);
  cleanups.push(() => socket.destroy());
  await once(socket, 'connect');
  const head = Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST ${path} HTTP/1.1\r\n${head.join('')}\r\n${first}`);
  const ended = once(socket, 'end').then(received);
  return { socket, ended, received };
}

/** Resolves when the process works at so many requests. */
async function arrived(p: Portcullis, count: number): Promise<void> {
  const metrics = async () => (await fetch(`${p.service.adminUrl}/metrics`)).text();
  const active = async () => Number(/^http_server_active_requests\S* (\d+)$/m.exec(await metrics())?.[1]);
  await expect.poll(active, { timeout: 10_000 }).toBe(count);
}

it('D1-13: stalled request bodies delay a stop by at most two seconds: 503, or 500 if the statuses are fixed', async () => {
  await using upstream = await startUpstream((req) => void req.resume());
  const file = await gatewayFile({ moved: upstream.url }, [
    { methods: ['POST'], path: '/v1/moved', services: ['moved'], visibility: 'public' },
  ]);
  cleanups.push(() => file[Symbol.asyncDispose]());
  const p = await startPortcullis({ env: { GATEWAY_CONFIG: file.path } });
  const bearer = { authorization: `Bearer ${await p.clientToken()}` };
  const webhook = basic(p.webhook.username, p.webhook.password);
  const rules = `/v1/wallets/${p.demo.wallet_id}/rules`;
  const cases: [path: string, headers: Record<string, string>, status: number][] = [
    [rules, { ...CONTENT, ...bearer, 'x-target-server': 'wallet-rules' }, 503],
    ['/v2/oauth/token', CONTENT, 503],
    ['/graphql', { ...CONTENT, ...bearer }, 503],
    ['/graphql', { ...FORM, ...bearer }, 503],
    ['/v2/mcp', { ...CONTENT, authorization: `Bearer ${p.demo.client.client_secret}` }, 503],
    ['/v1/moved', { ...CONTENT, 'x-target-server': 'moved' }, 503],
    ['/v2/webhooks/custodial', { ...CONTENT, authorization: webhook }, 500],
    ['/v2/users/migrate/with-wallet', { ...CONTENT, ...bearer }, 500],
  ];
  const requests = await Promise.all(cases.map(([path, headers]) => begun(p, path, headers)));
  await arrived(p, requests.length).catch((error) => {
    throw new Error(`answered: ${requests.map(({ received }) => received().split('\r\n')[0]).join('; ')}`, {
      cause: error,
    });
  });
  const stopped = p[Symbol.asyncDispose]();
  const answers = await Promise.all(requests.map(({ ended }) => ended));
  await stopped;
  expect(answers.map((text, at) => [cases[at]?.[0], Number(text.split(' ')[1])])).toEqual(
    cases.map(([path, , status]) => [path, status]),
  );
  // Each is whole, so that no deadline has cut it, and the last of its connection.
  for (const text of answers) {
    const [head = '', body = ''] = text.split('\r\n\r\n');
    expect(head).toMatch(/^connection: close$/im);
    expect(Buffer.byteLength(body)).toBe(Number(/^content-length: (\d+)$/im.exec(head)?.[1]));
  }
});

it('D1-13: a body that keeps arriving is waited for during a stop, and its request is answered', async () => {
  const p = await startPortcullis();
  const body = JSON.stringify({ grant_type: 'client_credentials', ...p.demo.client });
  const headers = { ...CONTENT, 'content-length': `${body.length}` };
  const { socket, ended } = await begun(p, '/v2/oauth/token', headers, body.slice(0, 1));
  await arrived(p, 1);
  const stopped = p[Symbol.asyncDispose]();
  let sent = 1;
  const dribble = setInterval(() => {
    const next = sent + Math.ceil(body.length / 8);
    socket.write(body.slice(sent, next));
    sent = next;
  }, 400);
  expect(await ended).toMatch(/^HTTP\/1\.1 200 /);
  clearInterval(dribble);
  await stopped;
});
