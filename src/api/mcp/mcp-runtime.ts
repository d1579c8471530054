import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  type JSONRPCMessage,
  type jsonSchemaValidator,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { Counter } from 'prom-client';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { sendBody } from '../../gateway/exchange/responses.ts';
import type { Log } from '../../lib/log.ts';
import { VERSION } from '../../platform/health.ts';
import { membersOfWideObject } from '../shared/nested-values.ts';
import type { FeatureServices } from '../shared/services.ts';
import {
  type AgentIdentity,
  failureOf,
  printableName,
  requireScope,
  type TOOL_OUTCOMES,
  type Tool,
  type ToolCall,
  type ToolFailure,
} from './kit/tool.ts';
import { invalidParams, messageOf, notAMessage, readMessage } from './message.ts';

/** The name and version of the server, as `initialize` returns them. */
const SERVER = { name: 'portcullis', title: 'Portcullis', version: VERSION };

/** The tools of a server, and how a model is told of them. */
export interface Toolset {
  /** The tools by name, in the order in which they are listed. */
  tools: ReadonlyMap<string, Tool>;
  /** What a model reads before it chooses a tool. */
  instructions: string;
}

/**
 * Calls a tool. A refusal becomes a result that the model reads, and so does an unexpected error, which shows only the
 * correlation id under which it is logged.
 * @throws ProtocolError for an unknown tool.
 */
async function callTool(
  { outcomes, log, tools }: McpRuntimeDependencies & Toolset,
  name: string,
  args: Readonly<Record<string, unknown>>,
  call: ToolCall,
): Promise<CallToolResult> {
  const count = (outcome: (typeof TOOL_OUTCOMES)[number]) => outcomes.inc({ outcome });
  const tool = tools.get(name);
  if (!tool) {
    count('error');
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `there is no tool ${printableName(name)}: see tools/list`);
  }
  try {
    if (tool.scope !== undefined) requireScope(call.caller, tool.scope);
    const output = await tool.run(args, call);
    count('ok');
    return { content: [{ type: 'text', text: JSON.stringify(output) }], structuredContent: { ...output } };
  } catch (error) {
    const fault = failureOf(error, tool.missing);
    count(fault ? 'error' : 'failed');
    if (fault) return failed(fault);
    const { correlationId } = call.caller;
    log.error({ correlation_id: correlationId, tool: name, err: error }, 'tool failed');
    const message = `internal error, not caused by the arguments; the operator can find it by the correlation id ${correlationId}`;
    return failed({ code: 'internal_error', message });
  }
}

/**
 * Returns the result for a failure, as a model reads it: a line with its code and message, and a line for each issue.
 */
function failed(fault: ToolFailure): CallToolResult {
  const { code, message, issues } = fault;
  const lines = (issues ?? []).map(({ path, message: wrong }) => (path === '' ? `- ${wrong}` : `- ${path}: ${wrong}`));
  return {
    isError: true,
    content: [{ type: 'text', text: [`${code}: ${message}`, ...lines].join('\n') }],
    _meta: { error: issues ? { code, issues } : { code } },
  };
}

/** The dependencies of the MCP runtime. */
export interface McpRuntimeDependencies {
  services: FeatureServices;
  /** The most that a call may cost, as an operation of GraphQL. */
  maxCost: number;
  outcomes: Counter<'outcome'>;
  log: Log;
}

/** The maximum number of members of an object in a message; no valid message has as many. */
const MAX_MEMBERS = 1_000;

/**
 * A validator that is never used: it would validate the responses of clients to requests of the server, which sends
 * none.
 */
const NO_VALIDATOR: jsonSchemaValidator = {
  getValidator: () => () => ({ valid: false, data: undefined, errorMessage: 'the server sends no requests' }),
};

/** Returns the headers that the SDK reads. `Accept` is fixed, because the response is JSON whatever a client accepts. */
function headersOf({ headers }: Exchange['req']): Record<string, string> {
  const headerEntries = ['mcp-protocol-version', 'mcp-method', 'mcp-name'].flatMap((name) => {
    const value = headers[name];
    // An empty header says nothing, as a member that is null.
    return typeof value === 'string' && value !== '' ? [[name, value]] : [];
  });
  return { ...ALWAYS, ...Object.fromEntries(headerEntries) };
}

const ALWAYS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Creates the runtime. Each message has its own SDK server and transport, so that clients share no state. */
export function createMcpRuntime(deps: McpRuntimeDependencies & Toolset) {
  const { tools, instructions } = deps;
  /** Creates the server that answers one message. */
  function serverFor(call: ToolCall, message: JSONRPCMessage): Server {
    const options = { capabilities: { tools: {} }, instructions, jsonSchemaValidator: NO_VALIDATOR };
    const server = new Server(SERVER, options);
    server.setRequestHandler('tools/list', () => ({
      tools: [...tools.values()]
        .filter(({ scope }) => scope === undefined || call.caller.permissions.has(scope))
        .map(({ listed }) => listed),
    }));
    // The arguments are those that were sent: the schemas of the protocol would drop `__proto__` before a tool refuses it.
    const sent = 'method' in message ? (message.params?.arguments as Record<string, unknown> | undefined) : undefined;
    server.setRequestHandler('tools/call', ({ params: { name } }) => callTool(deps, name, sent ?? {}, call));
    return server;
  }

  return {
    readMessage,
    /**
     * Answers a message of a client.
     * @throws Refusal 400 for a body that is not a JSON-RPC message.
     */
    async answer(exchange: Exchange, identity: AgentIdentity, requestBody: object): Promise<void> {
      // Refused first, because each schema that follows would examine every member.
      if (membersOfWideObject(requestBody, MAX_MEMBERS))
        throw notAMessage(`have at most ${MAX_MEMBERS} members in an object`);
      const message = messageOf(requestBody);
      const request = new Request('http://localhost/', { method: 'POST', headers: headersOf(exchange.req) });
      const { correlationId, span } = exchange;
      const caller = { ...identity, correlationId, traceparent: span?.traceparent };
      const server = serverFor({ caller, services: deps.services, maxCost: deps.maxCost }, message);
      const respond = (await isLegacyRequest(request, message)) ? answerOlder : answerStateless;
      await send(exchange, await respond(server, request, message));
    },
  };
}

/**
 * Answers a message of a revision before 2026-07-28, whose clients begin with `initialize`. Each message has its own
 * transport, and its response is JSON: an event stream, the SDK's default, would be buffered by intermediaries.
 */
async function answerOlder(server: Server, request: Request, message: JSONRPCMessage): Promise<Response> {
  const invalid = invalidParams(message);
  if (invalid) return Response.json(invalid);
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  try {
    await server.connect(transport);
    return await transport.handleRequest(request, { parsedBody: message });
  } finally {
    await server.close();
  }
}

/**
 * Answers a message of the stateless revision 2026-07-28.
 * @throws Error for an unexpected error, which the SDK would answer with 500.
 */
async function answerStateless(server: Server, request: Request, message: JSONRPCMessage): Promise<Response> {
  const faults: Error[] = [];
  const handler = createMcpHandler(() => server, { legacy: 'reject', onerror: (fault) => void faults.push(fault) });
  const answer = await handler.fetch(request, { parsedBody: message });
  if (answer.status >= 500) throw faults.at(-1) ?? new Error(`the MCP handler returned status ${answer.status}`);
  return answer;
}

const JSON_TYPE = 'application/json; charset=utf-8';

async function send({ res }: Exchange, answer: Response): Promise<void> {
  const bytes = Buffer.from(await answer.arrayBuffer());
  res.statusCode = answer.status;
  // The data of a tenant must not be stored by caches.
  res.setHeader('Cache-Control', 'no-store');
  const type = answer.headers.get('content-type');
  if (type !== null) res.setHeader('Content-Type', type === 'application/json' ? JSON_TYPE : type);
  res.setHeader('Content-Length', bytes.length);
  await sendBody(res, bytes);
}
