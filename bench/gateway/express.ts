import { Agent } from 'node:http';
import express, { type NextFunction, type Request, type Response } from 'express';
import { createProxyMiddleware, fixRequestBody, responseInterceptor } from 'http-proxy-middleware';
import { jwtVerify } from 'jose';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { shortestRecords } from '../lib/shortest-record.ts';
import { importKey } from '../tokens/sign.ts';
import { gatewayOptions, REQUESTS_PER_SECOND } from './peer.ts';

/**
 * Run as a process of its own: Express with http-proxy-middleware, jose and rate-limiter-flexible, as their pages say; with
 * a file for records it also keeps a record of each request, both bodies in it.
 */
const { port, upstream, signingSecret, records } = gatewayOptions();
const keep = records && shortestRecords(records);
const startedTicks = new WeakMap<object, number>();
// A key that is imported once; jose imports bytes for each token.
const key = await importKey(signingSecret, 'verify');
const limiter = new RateLimiterMemory({ points: REQUESTS_PER_SECOND, duration: 1 });
const app = express();
app.disable('x-powered-by');

app.get('/health', (_req, res) => {
  res.json({});
});
app.use(async (req: Request, res: Response, next: NextFunction) => {
  startedTicks.set(req, performance.now());
  try {
    const token = (req.headers.authorization ?? '').replace(/^Bearer /, '');
    const { payload } = await jwtVerify(token, key, { algorithms: ['HS256'] });
    await limiter.consume(String(payload.client_id));
    next();
  } catch (error) {
    res.sendStatus(error instanceof Error ? 401 : 429);
  }
});
const proxied = { target: upstream, xfwd: true, agent: new Agent({ keepAlive: true, maxSockets: 128 }) };
if (keep) {
  app.use(express.text({ type: () => true, limit: '1mb' }));
  const recorded = responseInterceptor(async (body, _answer, req) => {
    const { body: requestBody = '' } = req as Request;
    const startedTick = startedTicks.get(req) ?? 0;
    await new Promise<void>((kept) => {
      keep({ req, startedTick, requestBody, responseBody: body.toString('utf8') }, kept);
    });
    return body;
  });
  app.use(
    createProxyMiddleware({
      ...proxied,
      selfHandleResponse: true,
      on: { proxyReq: fixRequestBody, proxyRes: recorded },
    }),
  );
} else {
  app.use(createProxyMiddleware(proxied));
}
app.listen(port, '127.0.0.1');
