import { AppError, invalidRequest, notFound } from '../errors/app-error.ts';
import type { Exchange } from '../gateway/exchange.ts';
import { isNestedBeyond } from '../lib/json.ts';
import { jsonOf, payloadTooLarge } from '../rest/body.ts';
import { readBytes } from '../rest/read-bytes.ts';

/** No message of the protocol comes near to it, and no argument of a tool either. */
const MAX_NESTING = 100;

/**
 * The JSON of a request that may be a message. There are no sessions and no streams: a message is a POST, and its answer
 * the answer of that.
 * @throws AppError 404 for a session, 405 for another method, 413 for a body over the endpoint's limit, 400 for one that
 * is no JSON object.
 */
export async function readArrival(exchange: Exchange): Promise<object> {
  const { req, match } = exchange;
  if (req.headers['mcp-session-id'] !== undefined) throw notFound();
  if (req.method !== 'POST') throw new AppError(405, 'method_not_allowed', { headers: { Allow: 'POST' } });
  const maxBytes = match?.endpoint.max_body_bytes ?? 0;
  const bytes = await readBytes(exchange, { maxBytes, tooLarge: payloadTooLarge });
  // Before it costs a parser and a copy for the audit; of numbers the limit is that of all JSON.
  if (isNestedBeyond(bytes.toString('latin1'), MAX_NESTING)) throw notAMessage(`be at most ${MAX_NESTING} levels deep`);
  const message = jsonOf(exchange, bytes);
  if (Array.isArray(message)) throw notAMessage('be one message: batches are not taken');
  if (typeof message !== 'object' || message === null) throw notAMessage('be a JSON-RPC 2.0 message');
  return message;
}

/** 400: the body is no message of the protocol. */
export function notAMessage(expected: string): AppError {
  return invalidRequest([{ path: '', message: `must ${expected}` }]);
}
