import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { expect, inject, it, vi } from 'vitest';
import { startForwarder, startUpstream } from '../support/gateway/forwarder.ts';

const RELOADS = inject('isThorough') ? 100 : 8;
const LONG_ONES_EVERY = RELOADS / 4;

/** A response and a request under way: each gets a piece with every table. */
interface LongOne {
  from: number;
  stream: Promise<string>;
  sent: ClientRequest;
  answer: Promise<string>;
}

function pieces(from: number): string {
  return Array.from({ length: RELOADS - from + 1 }, (_, index) => `${from + index};`).join('');
}

it(`${RELOADS} reloads under load: no request fails, each is served by one table, and nothing leaks`, async () => {
  const streams: ServerResponse[] = [];
  // It is at another place in each table, so that its answers say which table a request saw.
  await using moving = await startUpstream((req, res) => {
    const [, generation, path] = /^\/g(\d+)(\/.*)$/.exec(req.url ?? '') ?? [];
    if (path !== '/slow') return void req.on('end', () => res.end(generation));
    res.flushHeaders();
    streams.push(res);
  });
  await using steady = await startUpstream((_req, res) => res.end('steady'));
  // Whatever closes a connection meanwhile is the gateway.
  for (const { server } of [moving, steady]) server.keepAliveTimeout = 600_000;
  const endpoint = (method: string, path: string, service = 'moving') => {
    return { methods: [method], path, services: [service] };
  };
  const table = (generation: number) => ({
    services: { moving: { at: `${moving.url}/g${generation}`, max_body_bytes: 0 }, steady: steady.url },
    endpoints: [
      ...[endpoint('GET', '/moving'), endpoint('GET', '/slow'), endpoint('POST', '/upload')],
      ...[endpoint('GET', '/steady', 'steady'), endpoint('GET', `/at/${generation}`)],
    ],
  });
  await using f = await startForwarder(table(0));
  let inForce = 0;
  let isOver = false;
  const faults: string[] = [];

  /** Requests a path again and again; `judge` says whether an answer is right, given the first and the last table in force meanwhile. */
  async function ask(
    pathOf: () => string,
    judge: (answer: { status: number; text: string }, first: number, last: number) => boolean,
  ): Promise<number> {
    let asked = 0;
    for (; !isOver; asked += 1) {
      const [first, path] = [inForce, pathOf()];
      const response = await fetch(`${f.url}${path}`);
      const answer = { status: response.status, text: await response.text() };
      if (!judge(answer, first, inForce)) faults.push(`${path} from ${first} to ${inForce}: ${JSON.stringify(answer)}`);
    }
    return asked;
  }
  const longOnes: LongOne[] = [];
  async function beginLongOnes(from: number): Promise<void> {
    const sent = request(`${f.url}/upload`, { method: 'POST' });
    const answer = once(sent, 'response').then(async ([response]: IncomingMessage[]) =>
      (await response?.toArray())?.join(''),
    ) as Promise<string>;
    longOnes.push({ from, sent, answer, stream: fetch(`${f.url}/slow`).then((response) => response.text()) });
    sent.write(`${from};`);
    await vi.waitFor(() => expect(streams.length).toBe(longOnes.length));
    streams.at(-1)?.write(`${from};`);
  }

  const isBetween = ({ status, text }: { status: number; text: string }, first: number, last: number) =>
    status === 200 && Number(text) >= first && Number(text) <= last;
  const load = [
    ...[1, 2].map(() => ask(() => '/moving', isBetween)),
    // What one table alone has is not there, or at the place that the same table names.
    ask(
      () => `/at/${inForce}`,
      (answer, first, last) => (answer.status === 404 ? last > first : isBetween(answer, first, first)),
    ),
    ask(
      () => '/steady',
      ({ status }) => status === 200,
    ),
  ];
  await beginLongOnes(0);
  for (let generation = 1; generation <= RELOADS; generation += 1) {
    inForce = generation;
    f.use(table(generation));
    for (const stream of streams) stream.write(`${generation};`);
    for (const { sent } of longOnes) sent.write(`${generation};`);
    if (generation % LONG_ONES_EVERY === 0) await beginLongOnes(generation);
    await vi.waitFor(() => expect(moving.seen.at(-1)?.url).toMatch(`/g${generation}/`), { interval: 5 });
  }
  isOver = true;
  expect(Math.min(...(await Promise.all(load)))).toBeGreaterThan(RELOADS / 2);
  expect(faults).toEqual([]);

  for (const stream of streams) stream.end();
  for (const { from, stream, sent, answer } of longOnes) {
    sent.end();
    expect([await stream, await answer]).toEqual([pieces(from), `${from}`]);
    expect(moving.seen.find(({ url }) => url === `/g${from}/upload`)?.body).toBe(pieces(from));
  }
  expect(longOnes).toHaveLength(5);
  expect(steady.connections).toBe(1);
  await vi.waitFor(() => expect(f.upstreams.retired).toEqual([]));
  // One table has a connection for each client and each of the long ones that began under it.
  const open = () => new Promise((resolve) => moving.server.getConnections((_error, count) => resolve(count)));
  await vi.waitFor(async () => expect(await open()).toBeLessThanOrEqual(6));
});
