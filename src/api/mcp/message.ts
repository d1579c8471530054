import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  ProtocolErrorCode,
  specTypeSchemas,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type Exchange, jsonOf, readBytes } from '../../gateway/exchange/exchange.ts';
import { objectInput } from '../../lib/input.ts';
import type { KnownMembers } from '../../lib/json.ts';
import { invalidRequest, issuesOf, notFound, Refusal } from '../../platform/errors.ts';

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

/** The members that each request has. */
const requestOutline = objectInput({
  jsonrpc: z.literal('2.0', 'must be 2.0'),
  method: z.string('must be a string'),
});

/**
 * Removes the members that are null, at any depth, since they count as absent (docs/contract.md, D2-18). A message may be
 * deeper than the stack.
 */
function removeNulls(message: object): void {
  const pending: object[] = [message];
  for (let value = pending.pop(); value; value = pending.pop()) {
    for (const [name, member] of Object.entries(value)) {
      if (member === null && !Array.isArray(value)) Reflect.deleteProperty(value, name);
      else if (typeof member === 'object' && member !== null) pending.push(member);
    }
  }
}

/**
 * Returns an object as a JSON-RPC message. Members that are null are removed from it.
 * @throws Refusal 400 for an object that is none, which names what it lacks or misspells.
 */
export function messageOf(value: object): JSONRPCMessage {
  // A request with an id of null would count as a notification, and its sender would wait for a response.
  if ('method' in value && 'id' in value && value.id === null)
    throw invalidRequest([{ path: 'id', message: 'must be a string or a number: MCP does not allow null' }]);
  removeNulls(value);
  if (isJSONRPCRequest(value) || isJSONRPCNotification(value) || isJSONRPCResponse(value)) return value;
  const { error } = requestOutline.safeParse(value);
  if (error) throw invalidRequest(issuesOf(error, value));
  throw notAMessage('be a JSON-RPC 2.0 message, whose params are an object if it has any');
}

const SCHEMAS = new Map<string, (typeof specTypeSchemas)['InitializeRequest' | 'ListToolsRequest' | 'CallToolRequest']>(
  [
    ['initialize', specTypeSchemas.InitializeRequest],
    ['tools/list', specTypeSchemas.ListToolsRequest],
    ['tools/call', specTypeSchemas.CallToolRequest],
  ],
);

const MAX_MESSAGE = 1_000;

/**
 * Returns the error response for a request whose params are invalid for its method (JSON-RPC 2.0, section 5.1);
 * undefined for any other message.
 */
export function invalidParams(message: JSONRPCMessage): JSONRPCErrorResponse | undefined {
  if (!('method' in message) || !('id' in message)) return undefined;
  const { issues } = SCHEMAS.get(message.method)?.['~standard'].validate(message) ?? {};
  if (!issues) return undefined;
  // The schemas of the SDK are made with zod too, though their type does not say so.
  const pathIssues = issuesOf(new z.ZodError(issues as z.core.$ZodIssue[]), message);
  const wrong = pathIssues.map(({ path, message: text }) => `${path}: ${text}`).join('; ');
  const error = { code: ProtocolErrorCode.InvalidParams, message: `${message.method}: ${wrong}`.slice(0, MAX_MESSAGE) };
  return { jsonrpc: '2.0', id: message.id, error };
}
