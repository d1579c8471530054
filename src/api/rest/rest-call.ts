import type { Request, Response } from 'express';
import { bytesOf, jsonBody } from '../../gateway/exchange/body.ts';
import { callerOf, exchangeOf } from '../../gateway/exchange/exchange.ts';
import { sendPieces } from '../../gateway/exchange/responses.ts';
import {
  IDEMPOTENCY_KEY,
  type IdempotentResponses,
  type KeyedRequest,
  type StoredResponse,
} from '../../idempotency/idempotent-responses.ts';
import { isShort, jsonSlices } from '../../lib/json-slices.ts';
import { runCooperatively } from '../../lib/yielding.ts';
import { invalidRequest } from '../../platform/errors.ts';

interface Once<Input> {
  answers: IdempotentResponses;
  /**
   * Parses the body.
   * @throws Refusal 400 if the body is invalid.
   */
  parse(body: unknown): Input;
  /** Does the work of the request, inside a transaction if the request has an `Idempotency-Key`. */
  work(input: Input): Promise<StoredResponse>;
  /** Wraps the work, including its transaction, for instance in a mutex. */
  wrapTransaction?(work: () => Promise<StoredResponse>): Promise<StoredResponse>;
}

/**
 * Answers a request whose body `readBody` has read. For a day a repetition with the same `Idempotency-Key` gets the
 * same status, body and headers. A refusal leaves the key free. An invalid body gets its 400 even if the key was used
 * for another request.
 */
export async function respondIdempotently<Input>(
  req: Request,
  res: Response,
  { answers, parse, work, wrapTransaction = (run) => run() }: Once<Input>,
): Promise<void> {
  const keyed = keyedRequest(req);
  const requestBody = await jsonBody(req);
  const input = await runCooperatively(() => parse(requestBody), exchangeOf(req).held);
  const run = () => work(input);
  const { status, headers, body } = await (keyed ? answers.respond(keyed, run, wrapTransaction) : wrapTransaction(run));
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  if (body === null) sendEmpty(res, status);
  else res.status(status).type('json').send(body);
}

/** Sends a page as JSON: a long one in pieces, without the tag that would need all of it at once. */
export async function sendPage(res: Response, page: object): Promise<void> {
  if (isShort(page)) res.json(page);
  else await sendPieces(res.type('json'), jsonSlices(page));
}

/** Sends a status without a body. Its length is said, since HTTP/1.0 would end the response with its connection. */
export function sendEmpty(res: Response, status: number): void {
  if (status !== 204) res.set('Content-Length', '0');
  res.status(status).end();
}

/**
 * Returns the request that an `Idempotency-Key` stands for; undefined without the header.
 * @throws Refusal 400 for a malformed key, or for several.
 */
function keyedRequest(req: Request): KeyedRequest | undefined {
  const headerValues = req.headersDistinct['idempotency-key'];
  if (!headerValues) return undefined;
  const [key = ''] = headerValues;
  if (headerValues.length > 1 || !IDEMPOTENCY_KEY.test(key)) {
    throw invalidRequest([{ path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters, once' }]);
  }
  const { nodeId, subject, clientId } = callerOf(req);
  return {
    ...{ nodeId, subject, clientId, method: req.method, key, bytes: bytesOf(req) },
    path: exchangeOf(req).target?.path ?? req.url,
  };
}
