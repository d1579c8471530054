import type { NextFunction, Request, Response } from 'express';
import type { NotificationPublisher } from '../../domain/transactions/transaction-messages.ts';
import { bytesOf, jsonBody, readBody } from '../../gateway/exchange/body.ts';
import { exchangeOf } from '../../gateway/exchange/exchange.ts';
import { sendEmpty } from '../../gateway/exchange/responses.ts';
import { AppError } from '../../platform/errors.ts';
import { NOTIFICATION } from '../openapi/examples.ts';
import { headersOf } from '../openapi/openapi-headers.ts';
import { responses } from '../openapi/openapi-responses.ts';
import { type Operation, parameterOf, refTo } from '../openapi/operation.ts';
import { route } from './route.ts';
import {
  type BasicCredentials,
  basicCredentials,
  isSignedAs,
  type SignaturePolicy,
  type WrongPasswords,
} from './webhook-authentication.ts';

/** What these routes call. */
interface WebhookServices {
  notifications: NotificationPublisher;
  webhookCredentials: BasicCredentials;
  wrongPasswords: Pick<WrongPasswords, 'add'>;
  webhookSignature: SignaturePolicy;
  /** Since when the alias is deprecated and until when it answers, in ISO 8601: `webhook_alias` of `gateway.yaml`. */
  webhookAlias: { deprecated_at: string; sunset: string };
}

/** How many milliseconds after the arrival of a request its notification must be published. */
const DEADLINE_MS = 4_000;

/** Makes handlers that check the Basic credentials, then the signature of the body, then the body, and publish it. */
function taking({ notifications, webhookCredentials, wrongPasswords, webhookSignature }: WebhookServices) {
  const isCaller = basicCredentials(webhookCredentials);

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
    if (!isSignedAs(webhookSignature, signed)) throw unauthenticated();
    next();
  }

  async function accept(req: Request, res: Response): Promise<void> {
    const exchange = exchangeOf(req);
    const value = jsonBody(req);
    await notifications.publish({
      value,
      body: bytesOf(req),
      correlationId: exchange.correlationId,
      traceparent: exchange.span?.traceparent,
      receivedAtMs: exchange.startedAtMs,
      deadlineMs: Math.max(0, DEADLINE_MS - (performance.now() - exchange.startedTick)),
    });
    sendEmpty(res, 200);
  }

  return [authenticate, readBody, verify, accept];
}

function unauthenticated(): AppError {
  return new AppError(401, 'unauthorized', { headers: { 'WWW-Authenticate': 'Basic realm="portcullis"' } });
}

/** Describes either path for OpenAPI; the alias answers with more headers. */
function operation(operationId: string, summary: string, aliasHeaders: readonly string[]): Operation {
  const { BadRequest, Unauthorized, InternalError } = responses;
  return {
    operationId,
    tag: 'Webhook',
    summary,
    description:
      'Published to both topics before it is answered; sending an id again is safe, in any order. Unknown members are ignored. Basic credentials are judged before the body, its signature once it is read.',
    security: [{ webhookBasic: [] }],
    parameters: ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(parameterOf),
    requestBody: {
      required: true,
      description: 'At most 256 KiB; a longer one is a 400.',
      content: { 'application/json': { schema: refTo('Notification'), example: NOTIFICATION } },
    },
    responses: {
      200: { description: 'Accepted and enqueued; no body.', headers: headersOf(...aliasHeaders) },
      400: { ...BadRequest, headers: headersOf(...aliasHeaders), description: 'Malformed, too long or not valid.' },
      401: {
        ...Unauthorized,
        description:
          'The Basic credentials are missing or wrong, or the signature is wrong, incomplete, more than 300 seconds away, or missing where it is required.',
        headers: headersOf('WWW-Authenticate', ...aliasHeaders),
      },
      500: {
        ...InternalError,
        headers: headersOf(...aliasHeaders),
        description: 'Publishing failed, or took longer than four seconds.',
      },
    },
  };
}

/** Takes a notification of a transaction (specification section 4.5). */
export const notifyTransaction = route({
  method: 'POST',
  path: '/v2/webhooks/custodial',
  operation: operation('notifyTransaction', 'Take a notification of a transaction', []),
  handlers: taking,
});

const SUCCESSOR = `<${notifyTransaction.path}>; rel="successor-version"`;

/** The same under a deprecated path, which says so in each response (RFC 9745, RFC 8594). */
const notifyTransactionByAlias = route({
  method: 'POST',
  path: '/v2/webhooks',
  operation: {
    ...operation('notifyTransactionByAlias', `The deprecated alias of POST ${notifyTransaction.path}`, [
      'Deprecation',
      'Sunset',
      'Link',
    ]),
    deprecated: true,
    headerExamples: { Link: SUCCESSOR },
  },
  handlers: (services: WebhookServices) => {
    const { deprecated_at, sunset } = services.webhookAlias;
    const headers = new Map([
      ['Deprecation', `@${Math.floor(Date.parse(deprecated_at) / 1000)}`],
      ['Sunset', new Date(sunset).toUTCString()],
      ['Link', SUCCESSOR],
    ]);
    const deprecated = (_req: Request, res: Response, next: NextFunction) => {
      res.setHeaders(headers);
      next();
    };
    return [deprecated, ...taking(services)];
  },
});

/** The routes of the webhook. */
export const webhookRoutes = [notifyTransaction, notifyTransactionByAlias];
