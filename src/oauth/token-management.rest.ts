import { type Request, type Response, Router } from 'express';
import type { ClientRecord } from '../clients/client-record.ts';
import type { Log } from '../lib/log.ts';
import { sendJson } from '../rest/send.ts';
import type { AccessDirectory } from './access-directory.ts';
import { beforeCall, clientCallOf, endCall, refusals } from './client-call.rest.ts';
import { runSteps, type Step } from './client-steps.ts';
import { type ManagementCall, tokenOf } from './management-endpoints.ts';
import { serverMetadata } from './metadata.ts';
import { oauthEnvelope } from './oauth-error.ts';
import { clientOf } from './token-call.ts';
import type { TokenManagement } from './token-management.ts';

interface ManagementRouterParts {
  steps: readonly Step<ManagementCall>[];
  tokens: TokenManagement;
  directory: AccessDirectory;
  /** `PUBLIC_URL`, as it is once the instance listens. */
  issuer(): string;
  log: Log;
}

/** POST /v2/oauth/revoke (RFC 7009), POST /v2/oauth/introspect (RFC 7662) and the metadata of both (RFC 8414). */
export function tokenManagementRouter({ steps, tokens, directory, issuer, log }: ManagementRouterParts): Router {
  const router = Router({ caseSensitive: true, strict: true });

  /** Answers with what `work` gives for the token, where the steps let the client through. */
  function call(work: (token: string, client: ClientRecord) => Promise<object>) {
    return async (req: Request, res: Response): Promise<void> => {
      const call: ManagementCall = { ...clientCallOf(req), token: undefined };
      await runSteps(steps, call).finally(() => endCall({ req, res, directory }, call, true));
      sendJson(res, 200, await work(tokenOf(call), clientOf(call)));
    };
  }

  router.post(
    '/v2/oauth/revoke',
    ...beforeCall,
    call(async (token, client) => {
      await tokens.revoke(token, client);
      return {};
    }),
  );
  router.post(
    '/v2/oauth/introspect',
    ...beforeCall,
    call((token, client) => tokens.introspect(token, client)),
  );
  router.get('/.well-known/oauth-authorization-server', (_req, res) => {
    res.setHeader('Cache-Control', 'public, max-age=3600');
    sendJson(res, 200, serverMetadata(issuer()));
  });
  router.use(refusals(log, (error) => oauthEnvelope(error)));
  return router;
}
