import {
  CallToolRequestSchema,
  ErrorCode,
  InitializeRequestSchema,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { issuesOf } from '../errors/issues.ts';

const SCHEMAS = new Map(
  [InitializeRequestSchema, ListToolsRequestSchema, CallToolRequestSchema].map((schema) => [
    schema.shape.method.value,
    schema,
  ]),
);

/** What a request is answered with whose params are not those of its method (JSON-RPC 2.0 section 5.1); undefined for all others. */
export function invalidParams(message: JSONRPCMessage): JSONRPCErrorResponse | undefined {
  if (!('method' in message) || !('id' in message)) return undefined;
  const parsed = SCHEMAS.get(message.method as Parameters<typeof SCHEMAS.get>[0])?.safeParse(message);
  if (!parsed || parsed.success) return undefined;
  const issues = issuesOf(parsed.error).map(({ path, message: wrong }) => `${path}: ${wrong}`);
  return {
    jsonrpc: '2.0',
    id: message.id,
    error: { code: ErrorCode.InvalidParams, message: `${message.method}: ${issues.join('; ')}`.slice(0, MAX_MESSAGE) },
  };
}

/** The arguments of a call as they came: the schemas of the protocol leave out `__proto__`, which no tool would then refuse. */
export function argumentsOf(message: JSONRPCMessage): Record<string, unknown> | undefined {
  return 'method' in message ? (message.params?.arguments as Record<string, unknown> | undefined) : undefined;
}

/** A message as a server that declares no tasks has to take it: without what would make one of it (Tasks, "Task Support and Handling"). */
export function withoutTask(message: JSONRPCMessage): JSONRPCMessage {
  if (!('method' in message) || message.params?.task === undefined) return message;
  const { task: _ignored, ...params } = message.params;
  return { ...message, params };
}

const MAX_MESSAGE = 1_000;
