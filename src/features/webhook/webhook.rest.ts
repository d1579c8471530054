import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { headersOf, type Operation, parameterOf, refTo, responses } from '../../api/openapi/operation.ts';
import { route, sendEmpty } from '../../api/rest/route.ts';
import { bytesOf, exchangeOf, jsonBody, readBody } from '../../gateway/exchange/exchange.ts';
import { callerAddress } from '../../lib/ip-address.ts';
import type { Log } from '../../lib/log.ts';
import { counterBy } from '../../lib/meters.ts';
import { nfc } from '../../lib/spelling.ts';
import { MemoryFailureCounts } from '../../platform/cache/cache.ts';
import { BASIC_CHALLENGE, Refusal } from '../../platform/errors.ts';
import { OTHER_ACCOUNTS } from '../../platform/held-memory.ts';
import type { NotificationPublisher } from '../transactions/transaction-messages.service.ts';

const NOTIFICATION = {
  id: '6f1d2b7c-3e94-4c08-a5d1-0b9e8f7a6c35',
  type: 1,
  status: 3,
  transaction_hash: '0x8f2a4c6e0b1d3f5a7c9e8d6b4a2f0e1c3d5b7a9f8e6c4d2b0a1f3e5d7c9b8a6f',
  contract_address: '',
  gas_used: 21000,
  error: null,
  created_at: '2026-11-21T10:30:00Z',
  updated_at: '2026-11-21T10:31:12Z',
};

/** The Basic credentials of the chain processor; during a rotation the previous password is accepted too. */
interface BasicCredentials {
  username: string;
  passwords: readonly string[];
}

// Digests have one length, so that the duration of a comparison does not depend on the expected value.
const digestOf = (text: string) => hash('sha256', nfc(text), 'buffer');

/**
 * Returns a function that checks in constant time whether an `Authorization` header carries the credentials (RFC 7617), in NFC.
 */
function basicCredentials({ username, passwords }: BasicCredentials): (header: string | undefined) => boolean {
  // A username with a colon can never match, since the password begins after the first colon.
  const pairs = username.includes(':') ? [] : passwords.map((password) => `${username}:${password}`);
  const expected = pairs.map((pair) => digestOf(pair));
  return (header) => {
    const encoded = /^Basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header ?? '')?.[1];
    if (encoded === undefined) return false;
    const receivedDigest = digestOf(Buffer.from(encoded, 'base64').toString());
    return expected.reduce((matches, pair) => timingSafeEqual(receivedDigest, pair) || matches, false);
  };
}

const TOLERANCE_S = 300;

/** How notifications must be signed. Without a key, signatures are not verified. */
interface SignaturePolicy {
  /** The current key and, during a rotation, the previous one. */
  keys: readonly Buffer[];
  /** Whether a notification without any of the signature headers is refused. */
  isRequired: boolean;
}

/** Why a notification is rejected. */
const REJECTIONS = ['password', 'signature', 'stale', 'future', 'incomplete'] as const;
type Rejection = (typeof REJECTIONS)[number];

/**
 * Returns why a notification is not signed as the policy requires, or undefined if it is (Standard Webhooks: HMAC-SHA256
 * of `id.timestamp.body`, of which one valid `v1` signature is enough; compared in constant time). `incomplete`: one of
 * the headers is missing, or all of them where a signature is required. `stale` and `future`: the timestamp is more than
 * 300 s off.
 */
export function signatureFault(
  { keys, isRequired }: SignaturePolicy,
  { headers, body, receivedAtMs }: { headers: NodeJS.Dict<string | string[]>; body: Buffer; receivedAtMs: number },
): Rejection | undefined {
  if (keys.length === 0) return undefined;
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  const isUnsigned = id === undefined && timestamp === undefined && signatures === undefined;
  if (isUnsigned && !isRequired) return undefined;
  if (!id || !timestamp || typeof signatures !== 'string') return 'incomplete';
  if (typeof timestamp !== 'string' || !/^\d+$/.test(timestamp)) return 'signature';
  const aheadS = Number(timestamp) - Math.floor(receivedAtMs / 1_000);
  if (Math.abs(aheadS) > TOLERANCE_S) return aheadS > 0 ? 'future' : 'stale';
  const head = Buffer.from(`${id}.${timestamp}.`, 'latin1');
  const expected = keys.map((key) =>
    digestOf(`v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`),
  );
  const receivedDigests = signatures.split(' ').map(digestOf);
  const matches = receivedDigests.flatMap((receivedDigest) =>
    expected.map((other) => timingSafeEqual(receivedDigest, other)),
  );
  return matches.includes(true) ? undefined : 'signature';
}

const MANY = 20;
/** How many notifications in a row, the last of them so long ago, say that the sender or this side is set wrong. */
const ALL_REJECTED = 5;
const RECENT_MS = 300_000;

/**
 * Counts rejected notifications by reason, and wrong passwords by caller, for monitoring. They are never answered with
 * 429, because the statuses of the webhook are a closed list.
 */
export class RejectedWebhooks {
  readonly rejections = counterBy('reason', REJECTIONS, {
    name: 'portcullis_webhook_rejections_total',
    help: 'Webhook requests rejected with 401, by reason (password, signature, stale, future, incomplete).',
  });
  readonly wrongPasswords = counterBy('kind', ['single', 'repeated'], {
    name: 'portcullis_webhook_wrong_passwords_total',
    help: 'Webhook requests with a wrong password; "repeated" once an address has sent 20 within a minute, otherwise "single".',
  });
  readonly #deps;
  /** The notifications rejected since the last one that was not, and the last of them. */
  #inARow = 0;
  #last: { reason: Rejection; atMs: number } | undefined;
  readonly #byCaller = new MemoryFailureCounts();

  constructor(deps: { log: Log; nowMs(): number }) {
    this.#deps = deps;
  }

  /** Counts a notification and returns the error to reject it with. */
  add(reason: Rejection): Refusal {
    this.rejections.inc({ reason });
    this.#inARow += 1;
    this.#last = { reason, atMs: this.#deps.nowMs() };
    return new Refusal('unauthorized', { reason, challenge: BASIC_CHALLENGE });
  }

  /** Notes that a notification was not rejected. */
  pass(): void {
    this.#inARow = 0;
  }

  /** `rejecting` and the last reason, while notifications come and every one of them is rejected; otherwise `ok`. */
  get state(): string {
    const isCurrent = this.#last && this.#deps.nowMs() - this.#last.atMs < RECENT_MS;
    return isCurrent && this.#inARow >= ALL_REJECTED ? `rejecting all notifications (${this.#last?.reason})` : 'ok';
  }

  /** Counts a wrong password, and logs every twentieth of one caller within a minute. */
  addPassword(address: string): void {
    const caller = callerAddress(address);
    const { count } = this.#byCaller.count(caller, this.#deps.nowMs());
    this.wrongPasswords.inc({ kind: count > MANY ? 'repeated' : 'single' });
    if (count % MANY > 0) return;
    this.#deps.log.warn(
      { real_ip: caller, count },
      'too many webhook requests with a wrong password from one address within a minute',
    );
  }
}

/** The services that these routes call. */
interface WebhookServices {
  notifications: NotificationPublisher;
  webhookCredentials: BasicCredentials;
  rejectedWebhooks: Pick<RejectedWebhooks, 'add' | 'addPassword' | 'pass'>;
  webhookSignature: SignaturePolicy;
  /** When the alias was deprecated and when it will be removed, in ISO 8601; `webhook_alias` of `gateway.yaml`. */
  webhookAlias: { deprecated_at: string; sunset: string };
  publicUrl: { readonly path: string };
}

/** The deadline for publishing a notification, in ms after the arrival of its request. */
const DEADLINE_MS = 4_000;

/**
 * Returns handlers that check the Basic credentials, then the signature, then the body, and publish the notification.
 */
function taking({ notifications, webhookCredentials, rejectedWebhooks, webhookSignature }: WebhookServices) {
  const isCaller = basicCredentials(webhookCredentials);

  function authenticate(req: Request, _res: Response, next: NextFunction): void {
    const { authorization } = req.headers;
    if (!isCaller(authorization)) {
      if (authorization !== undefined) rejectedWebhooks.addPassword(exchangeOf(req).realIp);
      throw rejectedWebhooks.add('password');
    }
    exchangeOf(req).held?.moveTo(OTHER_ACCOUNTS.webhook);
    next();
  }

  function verify(req: Request, _res: Response, next: NextFunction): void {
    const fault = signatureFault(webhookSignature, {
      headers: req.headers,
      body: bytesOf(req),
      receivedAtMs: exchangeOf(req).startedAtMs,
    });
    if (fault) throw rejectedWebhooks.add(fault);
    rejectedWebhooks.pass();
    next();
  }

  async function accept(req: Request, res: Response): Promise<void> {
    const exchange = exchangeOf(req);
    await notifications.publish({
      value: await jsonBody(req),
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

/** Returns the OpenAPI operation of either path; the responses of the alias have additional headers. */
function operation(operationId: string, summary: string, aliasHeaders: readonly string[]): Operation {
  const { BadRequest, Unauthorized, InternalError } = responses;
  return {
    operationId,
    tag: 'Webhook',
    summary,
    description:
      'The notification is published to both topics before the response. Sending an id again is safe, and notifications may arrive in any order. Unknown members are ignored. Basic credentials are checked before the body is read, the signature afterwards.',
    security: [{ webhookBasic: [] }],
    parameters: ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(parameterOf),
    requestBody: {
      required: true,
      description: 'At most 256 KiB; a longer body returns 400.',
      content: { 'application/json': { schema: refTo('Notification'), example: NOTIFICATION } },
    },
    responses: {
      200: { description: 'Accepted and enqueued; no body.', headers: headersOf(...aliasHeaders) },
      400: { ...BadRequest, headers: headersOf(...aliasHeaders), description: 'Malformed, too long or invalid.' },
      401: {
        ...Unauthorized,
        description:
          'The Basic credentials are missing or wrong, or the signature is wrong, incomplete, missing although required, or more than 300 seconds old or early.',
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

/** Receives a notification of a transaction (docs/contract.md, 4.5-01). */
export const notifyTransaction = route({
  method: 'POST',
  path: '/v2/webhooks/custodial',
  operation: operation('notifyTransaction', 'Receive a notification of a transaction', []),
  handlers: taking,
});

/** Receives notifications at a deprecated path, and announces its removal in each response (RFC 9745, RFC 8594). */
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
  },
  handlers: (services: WebhookServices) => {
    const { deprecated_at, sunset } = services.webhookAlias;
    const headers = new Map([
      ['Deprecation', `@${Math.floor(Date.parse(deprecated_at) / 1000)}`],
      ['Sunset', new Date(sunset).toUTCString()],
      ['Link', `<${services.publicUrl.path}${notifyTransaction.path}>; rel="successor-version"`],
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
