import httpProxy from '@fastify/http-proxy';
import jwt from '@fastify/jwt';
import rateLimit from '@fastify/rate-limit';
import fastify from 'fastify';
import { gatewayOptions, REQUESTS_PER_SECOND } from './peer.ts';

/** Run as a process of its own: Fastify with its plugins for proxying, tokens and limits, as their pages say. */
const { port, upstream, signingSecret } = gatewayOptions();
const app = fastify();
await app.register(jwt, { secret: signingSecret, verify: { algorithms: ['HS256'] } });
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
    await request.jwtVerify();
  });
  proxied.addHook('preHandler', proxied.rateLimit());
  await proxied.register(httpProxy, { upstream, undici: { connections: 128 } });
});
await app.listen({ port, host: '127.0.0.1' });
