import { createServer, type ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { parseGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import type { RequestState } from '../../src/gateway/exchange/exchange.ts';
import { UpstreamCalls } from '../../src/gateway/proxy/upstream-call.ts';
import { Upstreams, upstreamMetrics } from '../../src/gateway/proxy/upstreams.ts';
import { Services } from '../../src/gateway/routing.ts';
import { silentLog } from '../../src/lib/log.ts';
import {
  type Forwarder,
  listening,
  startForwarder,
  startUpstream,
  type TestUpstream,
} from '../support/gateway/forwarder.ts';
import { request, sendRaw } from '../support/gateway/raw.ts';
import { ENDLESS } from '../support/harness/endless.ts';

const METHODS = ['GET', 'POST'];

/** A service at an upstream; `at` distinguishes two ways to write it. */
function at({ url }: { url: string }, path = '', settings: object = {}) {
  return { at: `${url}${path}`, ...settings };
}

function endpointsOf(...services: string[]) {
  return services.map((name) => ({ methods: METHODS, path: `/${name}/**`, services: [name] }));
}

/** What the chain has found out of a request as far as it names a service. */
function foundWith(service: string): Pick<RequestState, 'endpoint' | 'service'> {
  return { endpoint: undefined, service };
}

async function ask({ url }: Forwarder, path: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${url}${path}`, { headers: { authorization: 'Bearer token' } });
  return { status: answer.status, text: await answer.text() };
}

function connectionsOf({ server }: TestUpstream): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

describe('a service after a reload', () => {
  it('with unchanged configuration keeps its connections, counters and failures, and an open circuit stays open', async () => {
    let isFailing = false;
    await using upstream = await startUpstream((req, res) => (isFailing ? req.socket.destroy() : res.end('ok')));
    const same = () => ({ same: at(upstream, '', { breaker: { failures: 2, open_ms: 60_000 } }) });
    await using f = await startForwarder({ services: same(), endpoints: endpointsOf('same') });
    const before = f.upstream('same');
    expect((await ask(f, '/same/1')).status).toBe(200);
    f.use({ services: { ...same(), other: at(upstream) }, endpoints: endpointsOf('same', 'other') });
    expect((await ask(f, '/same/2')).status).toBe(200);
    expect([f.upstream('same'), upstream.connections]).toEqual([before, 1]);
    isFailing = true;
    expect((await fetch(`${f.url}/same/3`, { method: 'POST', body: 'x' })).status).toBe(502);
    expect(before.circuit).toMatchObject({ kind: 'closed', failures: { otherFailures: 1 } });
    f.use({ services: same(), endpoints: endpointsOf('same') });
    expect((await sendRaw(f.url, request('POST', '/same/4'), { from: '127.0.0.2' })).status).toBe(502);
    f.use({ services: { ...same(), other: at(upstream) }, endpoints: endpointsOf('other', 'same') });
    const seen = upstream.seen.length;
    expect((await ask(f, '/same/5')).status).toBe(503);
    expect([upstream.seen.length, f.upstream('same').circuit.kind]).toEqual([seen, 'open']);
    expect(before.counts).toMatchObject({ answered: 2, failed: 2, refused: 1 });
  });

  it('with changed configuration starts with a closed circuit, and keeps its counters', async () => {
    await using upstream = await startUpstream((req, res) => (req.url === '/old/x/1' ? res.destroy() : res.end('ok')));
    const breaker = { failures: 1, open_ms: 60_000 };
    await using f = await startForwarder({ services: { x: at(upstream, '/old', { breaker }) } });
    for (const from of ['127.0.0.1', '127.0.0.2'])
      expect((await sendRaw(f.url, request('GET', '/x/1'), { from })).status).toBe(502);
    expect((await ask(f, '/x/1')).status).toBe(503);
    f.use({ services: { x: at(upstream, '/new', { breaker }) } });
    expect((await ask(f, '/x/1')).status).toBe(200);
    expect(upstream.seen.at(-1)?.url).toBe('/new/x/1');
    expect(f.upstream('x').counts).toMatchObject({ failed: 2, refused: 1, answered: 1 });
  });
});

describe('a service that is removed', () => {
  it('completes its requests: streams, bodies in transit and queued ones', async () => {
    const held: ServerResponse[] = [];
    await using upstream = await startUpstream((req, res) => {
      if (req.url?.endsWith('/wait')) return void res.end('came');
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: 1\n\n');
      held.push(res);
    });
    await using f = await startForwarder({ services: { gone: at(upstream, '', { connections: 1 }) } });
    const gone = f.upstream('gone');
    const stream = await fetch(`${f.url}/gone/events`);
    const waiting = ask(f, '/gone/wait');
    await vi.waitFor(() => expect(gone.requests.waiting()).toBe(1));
    f.use({ services: { other: 'local' } });
    expect([f.upstreams.all, f.upstreams.retired]).toEqual([[], [gone]]);
    expect(await ask(f, '/gone/wait')).toEqual({ status: 200, text: 'local other' });
    held[0]?.end('data: 2\n\n');
    expect(await stream.text()).toBe('data: 1\n\ndata: 2\n\n');
    expect(await waiting).toEqual({ status: 200, text: 'came' });
    await vi.waitFor(async () => expect(await connectionsOf(upstream)).toBe(0));
    expect(f.upstreams.retired).toEqual([]);
  });

  it('keeps its WebSockets until they close, and then closes its pool', async () => {
    const server = createServer((_req, res) => res.end('ok'));
    new WebSocketServer({ server }).on('connection', (socket) => socket.on('message', (data) => socket.send(data)));
    const url = await listening(server);
    await using f = await startForwarder({ services: { gone: { at: url } } });
    const gone = f.upstream('gone');
    const socket = new WebSocket(f.url.replace('http', 'ws'));
    const said: string[] = [];
    socket.on('message', (data) => said.push(String(data)));
    await new Promise((resolve) => socket.once('open', resolve));
    expect(await ask(f, '/x')).toEqual({ status: 200, text: 'ok' });
    f.use({ services: { other: 'local' } });
    socket.send('still here');
    await vi.waitFor(() => expect(said).toEqual(['still here']));
    expect([f.upstreams.retired, gone.sockets.held()]).toEqual([[gone], 1]);
    socket.close();
    await vi.waitFor(() => expect(f.upstreams.retired).toEqual([]));
    await new Promise((resolve) => server.close(resolve));
  });

  it('closes its streams when the process stops', async () => {
    await using upstream = await startUpstream((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    });
    await using f = await startForwarder({ services: { gone: at(upstream) } });
    const stream = await fetch(`${f.url}/events`);
    f.use({ services: { other: 'local' } });
    f.upstreams.stopStreams();
    await expect(stream.text()).rejects.toThrow();
    await vi.waitFor(() => expect(f.upstreams.retired).toEqual([]));
  });

  it('is in its former table for as long as a request passes through the chain', async () => {
    await using upstream = await startUpstream((_req, res) => res.end('came'));
    const table = parseGatewayConfig(
      'g',
      JSON.stringify({
        services: { gone: at(upstream), other: 'local' },
        webhook_alias: { deprecated_at: '2026-11-01T00:00:00Z', sunset: '2027-11-01T00:00:00Z' },
        endpoints: [{ methods: ['GET'], path: '/x' }],
      }),
    );
    const upstreams = new Upstreams(table, {
      calls: new UpstreamCalls(),
      log: silentLog,
      nowMs: Date.now,
      watch: ENDLESS,
      publicUrl: { value: '' },
    });
    const gone = upstreams.of('gone');
    const services = new Services(table, upstreams);
    upstreams.replace({ services: {} });
    expect(upstreams.of('gone')).toBe(undefined);
    expect(services.upstreamOf(foundWith('gone'))).toBe(gone);
    expect(services.upstreamOf(foundWith('other'))).toBe(undefined);
  });

  it('answers a request that began before the removal and reaches the service only afterwards', async () => {
    await using upstream = await startUpstream((_req, res) => res.end('came'));
    const gates: PromiseWithResolvers<void>[] = [];
    const guard = () => {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      return gate.promise;
    };
    await using f = await startForwarder({ services: { gone: at(upstream) }, guard });
    const first = ask(f, '/gone/first');
    const second = ask(f, '/gone/second');
    await vi.waitFor(() => expect(gates.length).toBe(2));
    f.use({ services: { other: 'local' } });
    for (const [index, answer] of [first, second].entries()) {
      expect([f.upstreams.retired, await connectionsOf(upstream)]).toEqual([[], 0]);
      gates[index]?.resolve();
      expect(await answer).toEqual({ status: 200, text: 'came' });
      await vi.waitFor(async () => expect(await connectionsOf(upstream)).toBe(0));
    }
    expect(f.upstreams.retired).toEqual([]);
  });
});

it('the metrics of a removed service show only what is still running', async () => {
  const held: ServerResponse[] = [];
  await using upstream = await startUpstream((_req, res) => void held.push(res));
  await using f = await startForwarder({ services: { gone: at(upstream) } });
  const metrics = upstreamMetrics(f.upstreams);
  const shown = async () => {
    const values = await Promise.all(metrics.map(async (metric) => (await metric.get()).values));
    return values.flat().flatMap(({ labels, value }) => (value > 0 ? [{ ...labels, value }] : []));
  };
  const answer = ask(f, '/gone/x');
  await vi.waitFor(() => expect(held.length).toBe(1));
  f.use({ services: { fresh: at(upstream, '/fresh') } });
  expect(await shown()).toEqual([
    { service: 'gone', state: 'going', value: 1 },
    { service: 'fresh', value: 1 },
  ]);
  held[0]?.end('ok');
  await answer;
  expect(await shown()).toEqual([{ service: 'fresh', value: 1 }]);
});
