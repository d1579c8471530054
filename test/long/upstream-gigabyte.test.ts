import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect, it } from 'vitest';
import { startForwarder, startUpstream } from '../support/gateway/forwarder.ts';

const PIECE = randomBytes(256 * 1024);
const PIECES = 4096;
const GIBIBYTE = PIECE.length * PIECES;
/** Client, gateway and upstream are all in this process; each holds some buffers of a connection, none a body. */
const MAX_GROWTH = 192 * 1024 * 1024;

function gibibyte(): Readable {
  let sent = 0;
  return new Readable({
    read() {
      this.push(sent++ < PIECES ? PIECE : null);
    },
  });
}

async function digestOf(stream: Readable): Promise<{ bytes: number; hash: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of stream) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, hash: hash.digest('hex') };
}

/** How much more memory the process has had than at the start. */
function watchMemory(): { growth(): number } & Disposable {
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 20);
  return { growth: () => most - before, [Symbol.dispose]: () => clearInterval(timer) };
}

const framings: [name: string, headers: Record<string, string>][] = [
  ['a length', { 'content-length': `${GIBIBYTE}` }],
  ['chunks', {}],
];

it.each(framings)(
  'D2-10: a gibibyte with %s is proxied in both directions, byte for byte, in bounded memory',
  async (_name, headers) => {
    const expected = await digestOf(gibibyte());
    let received: typeof expected | undefined;
    await using upstream = await startUpstream(() => undefined);
    upstream.server.removeAllListeners('request');
    upstream.server.on('request', async (req: IncomingMessage, res) => {
      if (req.method === 'POST') {
        received = await digestOf(req);
        res.end('taken');
      } else {
        res.writeHead(200, headers);
        await pipeline(gibibyte(), res);
      }
    });
    await using f = await startForwarder({ services: { a: { at: upstream.url, max_body_bytes: 0 } } });

    using memory = watchMemory();
    const down = request(`${f.url}/x`).end();
    const [download] = (await once(down, 'response')) as [IncomingMessage];
    expect(await digestOf(download)).toEqual(expected);
    const up = request(`${f.url}/x`, { method: 'POST', headers });
    const answered = once(up, 'response') as Promise<[IncomingMessage]>;
    await pipeline(gibibyte(), up);
    const [answer] = await answered;
    expect([answer.statusCode, (await answer.toArray()).join('')]).toEqual([200, 'taken']);
    expect(received).toEqual(expected);
    expect(memory.growth()).toBeLessThan(MAX_GROWTH);
    expect(f.ended.map(({ exchange }) => exchange().audit.capture.request.totalBytes)).toEqual([0, GIBIBYTE]);
  },
);
