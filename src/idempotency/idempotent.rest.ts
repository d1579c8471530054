import type { ServerResponse } from 'node:http';
import type { Request, Response } from 'express';
import { AppError, invalidRequest } from '../errors/app-error.ts';
import { exchangeOf, principalOf } from '../gateway/exchange.ts';
import { bytesOf, jsonBody } from '../rest/body.ts';
import { sendEmpty } from '../rest/send.ts';
import { isIdempotencyKey } from './idempotency-key.rules.ts';
import type { Answer, IdempotentAnswers, KeyedRequest } from './idempotent-answers.ts';

interface Once<Input> {
  answers: IdempotentAnswers;
  /** @throws AppError 400 for a body that is not valid. */
  parse(body: unknown): Input;
  /** Does what is asked for. Under a key it runs inside of a transaction. */
  work(input: Input): Promise<Answer>;
  /** Runs before any transaction, around the whole of it. */
  around?(work: () => Promise<Answer>): Promise<Answer>;
}

/**
 * Answers a request whose body `readBody` has read. With an `Idempotency-Key` the same request gets the same status, body
 * and headers for a day; an invalid body takes its key, and is told as such whatever the key stands for.
 */
export async function answerOnce<Input>(req: Request, res: Response, once: Once<Input>): Promise<void> {
  const { answers, parse, work, around = (run) => run() } = once;
  const keyed = keyedRequest(req);
  let input: Input;
  try {
    input = parse(jsonBody(req));
  } catch (error) {
    if (keyed && error instanceof AppError && error.status < 500) await answers.keepRefusal(keyed, error);
    throw error;
  }
  const run = () => work(input);
  const answer = keyed ? answers.alone(keyed, () => around(() => answers.answer(keyed, run))) : around(run);
  sendAnswer(res, await answer);
}

/** Sends an answer, now or again. */
function sendAnswer(res: ServerResponse, { status, headers, body }: Answer): void {
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  if (body === null) {
    sendEmpty(res, status);
    return;
  }
  const bytes = Buffer.from(body, 'utf8');
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', bytes.length);
  res.end(bytes);
}

/** @throws AppError 400 for a malformed key, or several. */
function keyedRequest(req: Request): KeyedRequest | undefined {
  const given = req.headersDistinct['idempotency-key'];
  if (!given) return undefined;
  const [key = ''] = given;
  if (given.length > 1 || !isIdempotencyKey(key)) {
    throw invalidRequest([{ path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters, once' }]);
  }
  const { nodeId, subject, clientId } = principalOf(req);
  const path = exchangeOf(req).target?.path ?? req.url;
  return { nodeId, subject, clientId, method: req.method, path, key, bytes: bytesOf(req) };
}
