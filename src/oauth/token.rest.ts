import { type NextFunction, type Request, type Response, Router } from 'express';
import { AppError, invalidRequest } from '../errors/app-error.ts';
import { originOf } from '../gateway/client-guards.ts';
import { exchangeOf } from '../gateway/exchange.ts';
import { bodyReader, jsonBody } from '../rest/body.ts';
import { sendJson } from '../rest/send.ts';
import type { TokenCall } from './token-call.ts';
import { issueToken, type TokenStep } from './token-endpoint.ts';

/** The client is in the body: this much of it is read before the guards have judged anybody. */
const MAX_REQUEST_BYTES = 64 * 1024;

/** POST /v2/oauth/token (specification section 4.1). Its envelope has exactly the documented three members. */
export function tokenRouter(steps: readonly TokenStep[]): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const readRequest = bodyReader({ maxBytes: MAX_REQUEST_BYTES, tooLarge: () => invalidRequest() });
  router.post('/v2/oauth/token', noStore, readRequest, async (req, res) => {
    const exchange = exchangeOf(req);
    const call: TokenCall = {
      body: jsonBody(req),
      ...originOf(exchange),
      request: undefined,
      client: undefined,
      granted: undefined,
    };
    const response = await issueToken(steps, call).finally(() => {
      const isApi = call.granted?.isApi ?? call.request?.grant_type !== 'password';
      if (call.client) exchange.caller = { nodeId: call.client.nodeId, isApi };
    });
    sendJson(res, 200, response);
  });
  router.use((error: unknown, _req: Request, _res: Response, next: NextFunction) => next(withoutIssues(error)));
  return router;
}

function noStore(_req: Request, res: Response, next: NextFunction): void {
  res.setHeader('Cache-Control', 'no-store');
  next();
}

function withoutIssues(error: unknown): unknown {
  if (!(error instanceof AppError) || !error.issues) return error;
  const { status, message, headers, cause } = error;
  return new AppError(status, message, { headers, cause });
}
