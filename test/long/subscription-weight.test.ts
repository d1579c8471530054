import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { TEST_DEADLINE_MS } from '../support/harness/deadlines.ts';
import { startInstance } from '../support/start/process.ts';

/** A shape takes 3 s on a machine that does nothing else. */
const SHAPES = 300;
/** So many subscriptions of a shape are opened: fewer are lost in what the collector leaves. */
const EACH = 200;
/** Of large ones, an account holds fewer; the others are refused. */
const FEWEST = 20;
/** What the process compiles or caches meanwhile is in a measurement too: one over the limit is repeated. */
const MOST_MEASUREMENTS = 3;
const MOST_RATIO = 1.5;
/** So many are on a WebSocket that has several. */
const ON_A_SOCKET = 50;
/** An access token is valid for 15 minutes, and the test lasts longer. */
const RENEWED_MS = 5 * 60_000;
const COLLECTED = 'garbage collected';
const COLLECTING = [
  '--expose-gc',
  '--import',
  `data:text/javascript,process.on('SIGUSR2',()=>{gc();gc();console.log('${COLLECTED}')})`,
];
/** What connections that were closed hold is released by what runs between two collections. */
const BETWEEN_COLLECTIONS_MS = 200;

let names = 0;
function fresh(): string {
  names += 1;
  return `n${names}`;
}
const text = fc.oneof(
  fc.constant(''),
  fc.string({ minLength: 1, maxLength: 2_000, unit: 'grapheme-ascii' }),
  fc.integer({ min: 1, max: 4_000 }).map((length) => '表'.repeat(length)),
);
const FIELDS = [
  'cursor',
  'correlationId',
  'transaction { id status }',
  '... { cursor }',
  '... on TransactionUpdate { cursor }',
];
/** How the subscriptions of a shape look: each has other names, unless its document `isShared`. */
const shape = fc.record({
  over: fc.constantFrom(...(['sse', 'sockets', 'few sockets'] as const)),
  isShared: fc.boolean(),
  fields: fc.array(fc.constantFrom(...FIELDS), { maxLength: 28 }),
  aliases: fc.nat(14),
  comment: text,
  idOrHash: text,
  isInVariables: fc.boolean(),
  undeclared: fc.array(fc.constantFrom<unknown>(0, 1.5, 'text', {}, [], { a: [1] }), { maxLength: 200 }),
  headers: fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 12 }),
});
type Shape = typeof shape extends fc.Arbitrary<infer One> ? One : never;

/** Returns the payload of one subscription of a shape. */
function payloadOf({ isShared, fields, aliases, comment, idOrHash, isInVariables, undeclared }: Shape, own: string) {
  const name = isShared ? 'shared' : own;
  const aliased = Array.from({ length: aliases }, (_, at) => `${name}_${at}: cursor`);
  const [declared, value] = isInVariables ? ['($f: TransactionFilter)', '$f'] : ['', '{ conflict: false }'];
  const query = `subscription ${name} ${declared} { transactionUpdates(filter: ${value}) { cursor ${[...fields, ...aliased].join(' ')} } } # ${comment.replaceAll(/[\r\n]/g, ' ')}`;
  return { query, variables: { ...(isInVariables && { f: { idOrHash } }), [own]: undeclared } };
}

it('D6-25: the charge for a subscription or an idle WebSocket is at least its heap size divided by 1.5', {
  timeout: TEST_DEADLINE_MS + SHAPES * 30_000,
}, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'portcullis-weight-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const instance = stack.use(await startInstance({ DATA_DIR: dir }, COLLECTING));
  const { host, hostname, port } = new URL(instance.baseUrl);
  const { client } = JSON.parse(await readFile(join(dir, 'demo.json'), 'utf8'));
  let authorization = '';
  let signedInAt = Number.NEGATIVE_INFINITY;
  const renewed = async () => {
    if (performance.now() < signedInAt + RENEWED_MS) return;
    signedInAt = performance.now();
    const signedIn = await fetch(`${instance.baseUrl}/v2/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ grant_type: 'client_credentials', ...client }),
    });
    authorization = `Bearer ${(await signedIn.json()).access_token}`;
  };

  let collections = 0;
  const collected = async () => {
    process.kill(instance.pid, 'SIGUSR2');
    collections += 1;
    await vi.waitFor(() => expect(instance.stdout().split(COLLECTED).length).toBeGreaterThan(collections), {
      timeout: TEST_DEADLINE_MS,
      interval: 10,
    });
  };
  const measured = async () => {
    await collected();
    await delay(BETWEEN_COLLECTIONS_MS);
    await collected();
    const metrics = await (await fetch(`${instance.adminUrl}/metrics`)).text();
    const sum = (name: string) =>
      Array.from(metrics.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm')), ([, value]) =>
        Number(value),
      ).reduce((total, one) => total + one, 0);
    return {
      heap: sum('nodejs_heap_size_used_bytes'),
      charged: sum('portcullis_held_memory_bytes'),
      open: sum('portcullis_subscriptions'),
    };
  };

  const sse = async (one: Shape, sockets: Socket[]) => {
    const body = JSON.stringify(payloadOf(one, fresh()));
    const socket = connect({ host: hostname, port: Number(port) }).on('error', () => undefined);
    sockets.push(socket);
    const others = one.headers.map((length, at) => `X-H${at}: ${'x'.repeat(length)}\r\n`).join('');
    socket.write(
      `POST /graphql HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${authorization}\r\nAccept: text/event-stream\r\n${others}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    const [head] = await once(socket, 'data');
    const [, status] = String(head).split(' ', 2);
    if (status !== '200' && status !== '503') throw new Error(String(head));
  };
  const webSocket = async () => {
    const socket = new WebSocket(`ws://${host}/graphql`, 'graphql-transport-ws', { perMessageDeflate: false });
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
    await once(socket, 'message');
    return socket;
  };
  /** Opens the subscriptions of a shape. Returns what closes them. */
  const opened = async (one: Shape) => {
    const sockets: Socket[] = [];
    const webSockets: WebSocket[] = [];
    for (let at = 0; at < EACH; at += 1) {
      if (one.over === 'sse') await sse(one, sockets);
      else {
        const latest = one.over === 'sockets' || at % ON_A_SOCKET === 0 ? undefined : webSockets.at(-1);
        const socket = latest ?? (await webSocket());
        if (socket !== latest) webSockets.push(socket);
        socket.send(JSON.stringify({ type: 'subscribe', id: fresh(), payload: payloadOf(one, fresh()) }));
      }
    }
    return () => {
      for (const socket of sockets) socket.destroy();
      for (const socket of webSockets) socket.terminate();
    };
  };
  const isOpen = (open: number) =>
    vi.waitFor(
      async () => {
        const seen = await measured();
        expect(seen.open).toBe(open);
        return seen;
      },
      { timeout: 30_000, interval: 100 },
    );
  /** Returns what is measured once no more subscriptions are opened. */
  const settled = async (fewest: number) => {
    for (let last = -1; ; ) {
      const seen = await measured();
      if (seen.open === last && seen.open >= fewest) return seen;
      last = seen.open;
    }
  };
  /** What is held for what is charged of connections that `open` opens, with so many subscriptions: the least of a few. */
  const ratioOf = async (open: () => Promise<() => void>, fewest = FEWEST) => {
    let least = Number.POSITIVE_INFINITY;
    for (let count = 0; count < MOST_MEASUREMENTS && least >= MOST_RATIO; count += 1) {
      await renewed();
      const before = await isOpen(0);
      const close = await open();
      const after = await settled(fewest);
      close();
      await isOpen(0);
      least = Math.min(least, (after.heap - before.heap) / (after.charged - before.charged));
    }
    return least;
  };
  const idle = async () => {
    const sockets: WebSocket[] = [];
    while (sockets.length < EACH) sockets.push(await webSocket());
    return () => {
      for (const socket of sockets) socket.terminate();
    };
  };

  const least = {
    fields: [],
    aliases: 0,
    comment: '',
    idOrHash: '',
    isInVariables: false,
    undeclared: [],
    headers: [],
  };
  const shapes: Shape[] = [
    { ...least, over: 'sse', isShared: false },
    { ...least, over: 'few sockets', isShared: false, aliases: 14 },
    ...fc.sample(shape, { numRuns: SHAPES, seed: 50 }),
  ];
  await renewed();
  // What the process loads, compiles and caches at first is no part of what others hold.
  for (const over of ['sse', 'sockets', 'few sockets'] as const) {
    const close = await opened({ ...least, over, isShared: false });
    await isOpen(EACH);
    close();
    await isOpen(0);
  }
  expect(await ratioOf(idle, 0), 'an idle WebSocket').toBeLessThan(MOST_RATIO);
  let worst = { ratio: 0, shape: shapes[0] };
  for (const one of shapes) {
    const ratio = await ratioOf(() => opened(one));
    if (ratio > worst.ratio) worst = { ratio, shape: one };
  }
  expect(worst.ratio, JSON.stringify(worst)).toBeLessThan(MOST_RATIO);
});
