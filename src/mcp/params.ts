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

const MAX_MESSAGE = 1_000;
