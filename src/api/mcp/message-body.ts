import { jsonOf, readBytes } from '../../gateway/exchange/body.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import type { KnownMembers } from '../../lib/json.ts';
import { invalidRequest, notFound, Refusal } from '../../platform/errors.ts';

/** The members with which each message of revision 2026-07-28 says how it is to be read. */
const ENVELOPE: KnownMembers = {
  'io.modelcontextprotocol/protocolVersion': {},
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: {}, version: {} },
};

/** The members of a message that the protocol knows, as far as this server reads them. */
const KNOWN: KnownMembers = {
  ...{ jsonrpc: {}, id: {}, method: {} },
  params: {
    ...{ name: {}, arguments: 'any', cursor: {}, _meta: ENVELOPE, task: {}, protocolVersion: {}, capabilities: {} },
    clientInfo: { name: {}, version: {} },
  },
};

/**
 * Reads the body of a request as JSON. Since there are neither sessions nor streams, every message is a POST and is
 * answered in its response.
 * @throws Refusal 404 for a request with a session id, 405 for another method, 413 for a body over the endpoint's
 * limit, 400 for a body that is not a JSON object.
 */
export async function readMessage(exchange: Exchange): Promise<object> {
  const { req } = exchange;
  if (req.headers['mcp-session-id'] !== undefined) throw notFound('sessions are not supported');
  if (req.method !== 'POST') {
    exchange.res.setHeader('Allow', 'POST');
    throw new Refusal('method_not_allowed');
  }
  const bytes = await readBytes(exchange, exchange.state.endpoint?.max_body_bytes ?? 0);
  const message = await jsonOf(exchange, bytes, KNOWN);
  if (Array.isArray(message)) throw notAMessage('be one message: batches are not accepted');
  if (typeof message !== 'object' || message === null) throw notAMessage('be a JSON-RPC 2.0 message');
  return message;
}

/** Returns the 400 error for a body that is not a message of the protocol. */
export function notAMessage(expected: string): Refusal {
  return invalidRequest([{ path: '', message: `must ${expected}` }]);
}
