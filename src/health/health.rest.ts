import { type Request, type Response, Router } from 'express';
import { sendJson } from '../rest/send.ts';
import type { Health } from './health.ts';

/** GET /health, /v1/health and /v2/health: 503 where the database is away, else 200. */
export function healthRouter(health: Health): Router {
  const router = Router({ caseSensitive: true, strict: true });

  function answer(_req: Request, res: Response): void {
    const report = health.report();
    sendJson(res, report.status === 'down' ? 503 : 200, report);
  }

  for (const path of ['/health', '/v1/health', '/v2/health']) router.get(path, answer);
  return router;
}
