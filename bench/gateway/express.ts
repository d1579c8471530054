import { Agent } from 'node:http';
import express, { type NextFunction, type Request, type Response } from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { jwtVerify } from 'jose';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { gatewayOptions, REQUESTS_PER_SECOND } from './peer.ts';

/** Run as a process of its own: Express with http-proxy-middleware, jose and rate-limiter-flexible, as their pages say. */
const { port, upstream, signingSecret } = gatewayOptions();
const secret = Buffer.from(signingSecret, 'utf8');
const limiter = new RateLimiterMemory({ points: REQUESTS_PER_SECOND, duration: 1 });
const app = express();

app.get('/health', (_req, res) => {
  res.json({});
});
app.use(async (req: Request, res: Response, next: NextFunction) => {
  try {
    const token = (req.headers.authorization ?? '').replace(/^Bearer /, '');
    const { payload } = await jwtVerify(token, secret, { algorithms: ['HS256'] });
    await limiter.consume(String(payload.client_id));
    next();
  } catch (error) {
    res.sendStatus(error instanceof Error ? 401 : 429);
  }
});
app.use(
  createProxyMiddleware({ target: upstream, xfwd: true, agent: new Agent({ keepAlive: true, maxSockets: 128 }) }),
);
app.listen(port, '127.0.0.1');
