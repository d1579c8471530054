import { type NextFunction, type Request, type Response, Router } from 'express';
import { AppError } from '../errors/app-error.ts';
import { exchangeOf } from '../gateway/exchange.ts';
import { bytesOf, jsonBody, readBody } from '../rest/body.ts';
import { sendEmpty } from '../rest/send.ts';
import { type BasicCredentials, basicCredentials } from './basic-credentials.rules.ts';
import { isSignedAs, type SignaturePolicy } from './signature.rules.ts';
import type { Webhook } from './webhook.service.ts';
import type { WrongPasswords } from './wrong-passwords.ts';

const DEADLINE_MS = 4_000;

interface WebhookParts {
  webhook: Webhook;
  credentials: BasicCredentials;
  wrongPasswords: Pick<WrongPasswords, 'add'>;
  signature: SignaturePolicy;
  alias: { deprecated_at: string; sunset: string };
}

/** POST /v2/webhooks/custodial and its deprecated alias (specification section 4.5): Basic first, then the body's signature, then the body. */
export function webhookRouter({ webhook, credentials, wrongPasswords, signature, alias }: WebhookParts): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const deprecation = deprecationHeaders(alias);
  const isCaller = basicCredentials(credentials);

  function authenticate(req: Request, _res: Response, next: NextFunction): void {
    const { authorization } = req.headers;
    if (!isCaller(authorization)) {
      if (authorization !== undefined) wrongPasswords.add(exchangeOf(req).realIp);
      throw unauthenticated();
    }
    next();
  }

  function verify(req: Request, _res: Response, next: NextFunction): void {
    const signed = { headers: req.headers, body: bytesOf(req), receivedAtMs: exchangeOf(req).startedAtMs };
    if (!isSignedAs(signature, signed)) throw unauthenticated();
    next();
  }

  async function accept(req: Request, res: Response): Promise<void> {
    const exchange = exchangeOf(req);
    const value = jsonBody(req);
    await webhook.accept({
      value,
      body: bytesOf(req),
      correlationId: exchange.correlationId,
      traceparent: exchange.span?.traceparent,
      receivedAtMs: exchange.startedAtMs,
      deadlineMs: Math.max(0, DEADLINE_MS - (performance.now() - exchange.startedTick)),
    });
    sendEmpty(res, 200);
  }

  function deprecated(_req: Request, res: Response, next: NextFunction): void {
    for (const [name, value] of deprecation) res.setHeader(name, value);
    next();
  }

  router.post('/v2/webhooks/custodial', authenticate, readBody, verify, accept);
  router.post('/v2/webhooks', deprecated, authenticate, readBody, verify, accept);
  return router;
}

/** RFC 9745 and RFC 8594. */
function deprecationHeaders(alias: WebhookParts['alias']): [string, string][] {
  return [
    ['Deprecation', `@${Math.floor(Date.parse(alias.deprecated_at) / 1000)}`],
    ['Sunset', new Date(alias.sunset).toUTCString()],
    ['Link', '</v2/webhooks/custodial>; rel="successor-version"'],
  ];
}

function unauthenticated(): AppError {
  return new AppError(401, 'unauthorized', { headers: { 'WWW-Authenticate': 'Basic realm="portcullis"' } });
}
