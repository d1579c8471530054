import { type CallToolResult, ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import type { Counter } from 'prom-client';
import type { Log } from '../lib/log.ts';
import { shown, type Tool, type ToolCall } from './tool.ts';
import { faultOf, type ToolFault, textOfFault } from './tool-error.ts';
import type { ToolOutcome } from './tool-outcomes.ts';

/** The tools that a client may call, by name: those whose scope it has. */
export function toolsOf(tools: ReadonlyMap<string, Tool>, scopes: ReadonlySet<string>): Tool[] {
  return [...tools.values()].filter(({ scope }) => scope === undefined || scopes.has(scope));
}

interface CallToolParts {
  tools: ReadonlyMap<string, Tool>;
  /** How calls have ended. */
  outcomes: Counter<'outcome'>;
  log: Log;
}

/**
 * Calls a tool. What it refuses is a result that the model reads, and so is a fault, which tells nothing but the
 * correlation id that finds it in the log.
 * @throws McpError for a tool that is not there.
 */
export async function callTool(
  { tools, outcomes, log }: CallToolParts,
  { name, arguments: args = {} }: { name: string; arguments?: Record<string, unknown> | undefined },
  call: ToolCall,
): Promise<CallToolResult> {
  const count = (outcome: ToolOutcome) => outcomes.inc({ outcome });
  const tool = tools.get(name);
  if (!tool) {
    count('error');
    throw new McpError(ErrorCode.InvalidParams, `there is no tool ${shown(name)}: tools/list has them all`);
  }
  const { scope } = tool;
  if (scope !== undefined && !call.caller.scopes.has(scope)) {
    count('error');
    const message = `the client lacks the scope ${scope}: whoever administers the clients of the node can add it`;
    return failed({ code: 'forbidden', message });
  }
  try {
    const given = await tool.run(args, call);
    count('ok');
    return { content: [{ type: 'text', text: JSON.stringify(given) }], structuredContent: { ...given } };
  } catch (error) {
    const fault = faultOf(error, tool.missing);
    count(fault ? 'error' : 'failed');
    if (fault) return failed(fault);
    const { correlationId } = call.caller;
    log.error({ correlation_id: correlationId, tool: name, err: error }, 'tool failed');
    const message = `something went wrong here, and not in the arguments; who operates the service finds it by the correlation id ${correlationId}`;
    return failed({ code: 'internal_error', message });
  }
}

function failed(fault: ToolFault): CallToolResult {
  const { code, issues } = fault;
  return {
    isError: true,
    content: [{ type: 'text', text: textOfFault(fault) }],
    _meta: { error: issues ? { code, issues } : { code } },
  };
}
