import { type CallToolResult, Client, StreamableHTTPClientTransport, type Tool } from '@modelcontextprotocol/client';
import type { Permission } from '../../../src/access/identity/permissions.rules.ts';
import type { Answer, Portcullis } from '../harness.ts';
import { addClient } from '../oauth/clients.ts';

/** What a tool has answered: what it gave, or its error's code and text. */
export interface ToolAnswer {
  given: Record<string, ReturnType<typeof JSON.parse>>;
  error: { code: string; issues?: { path: string; message: string }[] } | undefined;
  text: string;
}

/** An agent: the official client, with the secret of a client of ours. */
export interface Agent extends AsyncDisposable {
  client: Client;
  tools(): Promise<Tool[]>;
  call(name: string, args?: Record<string, unknown>): Promise<ToolAnswer>;
}

/** Connects as one does who follows the documentation. */
export async function connect(
  p: Portcullis,
  secret: string,
  headers: Record<string, string> = {},
  mode: 'auto' | 'legacy' = 'auto',
): Promise<Agent> {
  const transport = new StreamableHTTPClientTransport(new URL(`${p.url}/v2/mcp`), {
    requestInit: { headers: { ...headers, Authorization: `Bearer ${secret}` } },
  });
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  return {
    client,
    tools: async () => (await client.listTools()).tools,
    call: async (name, args = {}) => toolAnswer(await client.callTool({ name, arguments: args })),
    [Symbol.asyncDispose]: () => client.close(),
  };
}

function toolAnswer({ structuredContent, content, isError, _meta }: CallToolResult): ToolAnswer {
  const [first] = content;
  const text = first?.type === 'text' ? first.text : '';
  const error = isError === true ? (_meta?.error as ToolAnswer['error']) : undefined;
  return { given: structuredContent ?? {}, error, text };
}

/** The secret of a new client of the demo node with these scopes and no others. */
export async function secretWith(p: Portcullis, scopes: readonly Permission[]): Promise<string> {
  return (await addClient(p, { scopes: [...scopes] })).client_secret;
}

const ACCEPT = 'application/json, text/event-stream';

/** A message as it is sent, without any client in between. */
export function post(
  p: Portcullis,
  secret: string | undefined,
  message: unknown,
  { headers = {}, path = '/v2/mcp' }: { headers?: Record<string, string>; path?: string } = {},
): Promise<Answer> {
  const authorization: Record<string, string> = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
  return p.call('POST', path, { json: message, headers: { accept: ACCEPT, ...authorization, ...headers } });
}

/** A call of a tool, as a message. */
export function callOf(name: string, args: object = {}): object {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
}
