import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { refuse } from '../../gateway/exchange/responses.ts';
import { type AgentAccessParts, agentAccess } from './agent-access.ts';
import type { McpRuntime, McpRuntimeParts } from './mcp-runtime.ts';
import { readMessage } from './message-body.ts';

interface McpServerParts extends AgentAccessParts, McpRuntimeParts {
  production: boolean;
}

/** MCP behind the gateway. */
export interface McpServer {
  /** Answers a request of an agent. */
  handle(exchange: Exchange): void;
}

/**
 * Serves the Model Context Protocol over Streamable HTTP, without sessions: each request brings the secret of a client, and
 * is answered with JSON. What runs it is loaded with the first request, or at once in production.
 */
export function createMcpServer(parts: McpServerParts): McpServer {
  const admit = agentAccess(parts);
  let loading: Promise<McpRuntime> | undefined;
  const runtime = (): Promise<McpRuntime> => {
    loading ??= import('./mcp-runtime.ts').then(({ createMcpRuntime }) => createMcpRuntime(parts));
    return loading;
  };
  // Whoever asks first is told what went wrong.
  if (parts.production) runtime().catch(() => undefined);

  async function answer(exchange: Exchange): Promise<void> {
    const client = await admit(exchange);
    const message = await readMessage(exchange);
    await (await runtime()).answer(exchange, client, message);
  }

  return { handle: (exchange) => void answer(exchange).catch((error: unknown) => refuse(exchange, error, parts.log)) };
}
