import {
  CallToolRequestSchema,
  ErrorCode,
  InitializeRequestSchema,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { issuesOf } from '../../platform/errors.ts';

const SCHEMAS = new Map(
  [InitializeRequestSchema, ListToolsRequestSchema, CallToolRequestSchema].map((schema) => [
    schema.shape.method.value,
    schema,
  ]),
);

/**
 * Returns the error response for a request whose params are invalid for its method (JSON-RPC 2.0, section 5.1);
 * undefined for any other message.
 */
export function invalidParams(message: JSONRPCMessage): JSONRPCErrorResponse | undefined {
  if (!('method' in message) || !('id' in message)) return undefined;
  const parsed = SCHEMAS.get(message.method as Parameters<typeof SCHEMAS.get>[0])?.safeParse(message);
  if (!parsed || parsed.success) return undefined;
  const issues = issuesOf(parsed.error, message).map(({ path, message: wrong }) => `${path}: ${wrong}`);
  return {
    jsonrpc: '2.0',
    id: message.id,
    error: { code: ErrorCode.InvalidParams, message: `${message.method}: ${issues.join('; ')}`.slice(0, MAX_MESSAGE) },
  };
}

/**
 * Returns the arguments of a call as they were sent. The schemas of the protocol would drop `__proto__` before a tool
 * could refuse it.
 */
export function argumentsOf(message: JSONRPCMessage): Record<string, unknown> | undefined {
  return 'method' in message ? (message.params?.arguments as Record<string, unknown> | undefined) : undefined;
}

/**
 * Returns a message without its `task`, which a server that declares no tasks must ignore (MCP, Tasks, "Task Support
 * and Handling").
 */
export function withoutTask(message: JSONRPCMessage): JSONRPCMessage {
  if (!('method' in message) || message.params?.task === undefined) return message;
  const { task: _ignored, ...params } = message.params;
  return { ...message, params };
}

const MAX_MESSAGE = 1_000;
