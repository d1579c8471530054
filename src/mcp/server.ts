import type { Exchange } from '../gateway/exchange.ts';
import { refuse } from '../rest/refuse.ts';
import { type AgentAccessParts, agentAccess } from './agent-access.ts';
import { readArrival } from './arrival.ts';
import type { McpRuntime, McpRuntimeParts } from './runtime.ts';

export interface McpServerParts extends AgentAccessParts, McpRuntimeParts {
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
    loading ??= import('./runtime.ts').then(({ createMcpRuntime }) => createMcpRuntime(parts));
    return loading;
  };
  // Whoever asks first is told what went wrong.
  if (parts.production) runtime().catch(() => undefined);

  async function answer(exchange: Exchange): Promise<void> {
    const client = await admit(exchange);
    const message = await readArrival(exchange);
    await (await runtime()).answer(exchange, client, message);
  }

  return { handle: (exchange) => void answer(exchange).catch((error: unknown) => refuse(exchange, error, parts.log)) };
}
