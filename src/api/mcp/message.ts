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
import { objectInput } from '../../lib/input.ts';
import { invalidRequest, issuesOf } from '../../platform/errors.ts';
import { notAMessage } from './message-body.ts';

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
