import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  CallToolRequestSchema,
  JSONRPCMessageSchema,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/index.js';
import type { Counter } from 'prom-client';
import type { ClientRecord } from '../clients/client-record.ts';
import type { Exchange } from '../gateway/exchange.ts';
import type { Log } from '../lib/log.ts';
import { membersOfWideObject } from '../lib/nested-values.ts';
import { notAMessage } from './arrival.ts';
import { callTool, toolsOf } from './call-tool.ts';
import { INSTRUCTIONS, SERVER } from './instructions.ts';
import { argumentsOf, invalidParams, withoutTask } from './params.ts';
import { type McpServicesParts, mcpServices } from './services.ts';
import type { ToolCall } from './tool.ts';
import { TOOLS } from './tools.ts';

export interface McpRuntimeParts extends McpServicesParts {
  outcomes: Counter<'outcome'>;
  log: Log;
}

/** What answers messages. */
export interface McpRuntime {
  /**
   * Answers a message of a client.
   * @throws AppError 400 for what is no message.
   */
  answer(exchange: Exchange, client: ClientRecord, message: object): Promise<void>;
}

/** No message needs as many. */
const MAX_MEMBERS = 1_000;

/** The server asks its clients for nothing, so that it has no answers to validate. */
const NO_VALIDATOR: jsonSchemaValidator = {
  getValidator: () => () => ({ valid: false, data: undefined, errorMessage: 'nothing was asked for' }),
};

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Makes the tools. A server of the SDK and its transport live for one message: nothing of one client meets another's. */
export function createMcpRuntime({ outcomes, log, ...parts }: McpRuntimeParts): McpRuntime {
  const services = mcpServices(parts);
  return {
    async answer(exchange, client, message) {
      const { req } = exchange;
      // Each schema on the way would look at every one of them.
      if (membersOfWideObject(message, MAX_MEMBERS))
        throw notAMessage(`have at most ${MAX_MEMBERS} members in an object`);
      const parsed = JSONRPCMessageSchema.safeParse(message);
      if (!parsed.success) throw notAMessage('be a JSON-RPC 2.0 message, whose params are an object if it has any');
      const { data } = parsed;
      const invalid = invalidParams(data);
      if (invalid) {
        await send(exchange, Response.json(invalid));
        return;
      }
      const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
      const server = serverFor(
        { caller: callerOf(client, exchange), services },
        {
          outcomes,
          log,
          args: argumentsOf(data),
        },
      );
      try {
        await server.connect(transport);
        const version = req.headers['mcp-protocol-version'];
        const headers = typeof version === 'string' ? { ...HEADERS, 'mcp-protocol-version': version } : HEADERS;
        const request = new Request('http://localhost/v2/mcp', { method: 'POST', headers });
        await send(exchange, await transport.handleRequest(request, { parsedBody: withoutTask(data) }));
      } finally {
        await server.close();
      }
    },
  };
}

interface CallParts {
  outcomes: Counter<'outcome'>;
  log: Log;
  /** Of the tool that the message calls, if it calls one. */
  args: Record<string, unknown> | undefined;
}

function serverFor(call: ToolCall, { outcomes, log, args }: CallParts): Server {
  const options = { capabilities: { tools: {} }, instructions: INSTRUCTIONS, jsonSchemaValidator: NO_VALIDATOR };
  const server = new Server(SERVER, options);
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: toolsOf(TOOLS, call.caller.scopes).map(({ listed }) => listed),
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params: { name } }) =>
    callTool({ tools: TOOLS, outcomes, log }, { name, arguments: args }, call),
  );
  return server;
}

function callerOf({ nodeId, clientId, name, scopes }: ClientRecord, exchange: Exchange): ToolCall['caller'] {
  const { correlationId, span } = exchange;
  return { nodeId, clientId, clientName: name, scopes: new Set(scopes), correlationId, traceparent: span?.traceparent };
}

async function send({ res }: Exchange, answer: Response): Promise<void> {
  const bytes = Buffer.from(await answer.arrayBuffer());
  res.statusCode = answer.status;
  // What tenants own is for whoever has asked.
  res.setHeader('Cache-Control', 'no-store');
  if (bytes.length > 0) res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', bytes.length);
  res.end(bytes);
}
