import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import httpProxy from '@fastify/http-proxy';
import jwt from '@fastify/jwt';
import rateLimit from '@fastify/rate-limit';
import fastify from 'fastify';
import { shortestRecords } from '../lib/shortest-record.ts';
import { gatewayOptions, REQUESTS_PER_SECOND } from './peer.ts';

/**
 * Run as a process of its own: Fastify with its plugins for proxying, tokens and limits, as their pages say; with a file for
 * records it also keeps a record of each request, both bodies in it.
 */
const { port, upstream, signingSecret, records } = gatewayOptions();
const keep = records && shortestRecords(records);
const startedTicks = new WeakMap<object, number>();
const app = fastify();
// Like the product, it verifies the signature of a token once.
await app.register(jwt, { secret: signingSecret, verify: { algorithms: ['HS256'], cache: true } });
await app.register(rateLimit, {
  global: false,
  max: REQUESTS_PER_SECOND,
  timeWindow: 1000,
  hook: 'preHandler',
  keyGenerator: ({ user }) => String((user as { client_id: string }).client_id),
});
app.get('/health', async () => ({}));
await app.register(async (proxied) => {
  proxied.addHook('onRequest', async (request) => {
    startedTicks.set(request.raw, performance.now());
    await request.jwtVerify();
  });
  proxied.addHook('preHandler', proxied.rateLimit());
  if (keep) {
    proxied.addHook('onSend', async ({ raw, body }, _reply, payload) => {
      const responseBody = payload instanceof Readable ? await text(payload) : String(payload ?? '');
      const requestBody = body === undefined || body === null ? '' : JSON.stringify(body);
      const startedTick = startedTicks.get(raw) ?? 0;
      await new Promise<void>((kept) => keep({ req: raw, startedTick, requestBody, responseBody }, kept));
      return responseBody;
    });
  }
  await proxied.register(httpProxy, {
    upstream,
    undici: { connections: 128 },
    // A body that is recorded has to be read first.
    proxyPayloads: !keep,
  });
});

await app.listen({ port, host: '127.0.0.1' });
