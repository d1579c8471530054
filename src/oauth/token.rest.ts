import { Router } from 'express';
import { AppError } from '../errors/app-error.ts';
import { exchangeOf } from '../gateway/exchange.ts';
import { jsonBody, readBody } from '../rest/body.ts';
import { sendJson } from '../rest/send.ts';
import type { TokenCall } from './token-call.ts';
import { issueToken, type TokenStep } from './token-endpoint.ts';

const MAX_REQUEST_BYTES = 64 * 1024;

/** POST /v2/oauth/token (specification section 4.1). Its envelope has exactly the documented three members. */
export function tokenRouter(steps: readonly TokenStep[]): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.post('/v2/oauth/token', readBody, async (req, res) => {
    const exchange = exchangeOf(req);
    const fingerprint = req.headers['ssl-client-fingerprint'];
    const call: TokenCall = {
      body: exchange.capture.request.totalBytes > MAX_REQUEST_BYTES ? undefined : plainJson(() => jsonBody(req)),
      realIp: exchange.realIp,
      fingerprint: Array.isArray(fingerprint) ? fingerprint.join(',') : fingerprint,
      request: undefined,
      client: undefined,
      response: undefined,
    };
    res.setHeader('Cache-Control', 'no-store');
    const response = await issueToken(steps, call).finally(() => {
      const isApi = call.request?.grant_type !== 'password';
      if (call.client) exchange.caller = { nodeId: call.client.nodeId, isApi };
    });
    sendJson(res, 200, response);
  });
  return router;
}

/** The body, or undefined where it cannot be read as JSON: the first step refuses that without naming members. */
function plainJson(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
