import { Router } from 'express';
import type { Log } from '../lib/log.ts';
import { sendJson } from '../rest/send.ts';
import type { AccessDirectory } from './access-directory.ts';
import { beforeCall, clientCallOf, endCall, refusals } from './client-call.rest.ts';
import { tokenEnvelope, tokenOAuthEnvelope } from './oauth-error.ts';
import { isStandardRequest } from './parameters.ts';
import type { TokenCall } from './token-call.ts';
import { issueToken, type TokenStep } from './token-endpoint.ts';

/**
 * POST /v2/oauth/token (specification section 4.1). Its envelope has exactly the documented three members; a request
 * that is a form or has HTTP Basic gets those of RFC 6749 section 5.2 beside them.
 */
export function tokenRouter(steps: readonly TokenStep[], directory: AccessDirectory, log: Log): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.post('/v2/oauth/token', ...beforeCall, async (req, res) => {
    const call: TokenCall = { ...clientCallOf(req), request: undefined, granted: undefined };
    const response = await issueToken(steps, call).finally(() =>
      endCall({ req, res, directory }, call, call.granted?.isApi ?? call.request?.grant_type !== 'password'),
    );
    sendJson(res, 200, response);
  });
  router.use(
    refusals(log, (error, { headers }) =>
      isStandardRequest(headers) ? tokenOAuthEnvelope(error) : tokenEnvelope(error),
    ),
  );
  return router;
}
