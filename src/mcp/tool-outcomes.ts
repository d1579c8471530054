import { Counter } from 'prom-client';

/** Whose fault a call was, if it was one: to HTTP all of them are 200. */
export type ToolOutcome = 'ok' | 'error' | 'failed';

/** What an operator sees of the calls of tools. */
export function toolOutcomes(): Counter<'outcome'> {
  const calls = new Counter({
    name: 'portcullis_tool_calls_total',
    help: 'Calls of MCP tools, by outcome: ok, an error that is meant for the agent, or failed by a fault of ours.',
    labelNames: ['outcome'],
    registers: [],
  });
  for (const outcome of ['ok', 'error', 'failed'] satisfies ToolOutcome[]) calls.inc({ outcome }, 0);
  return calls;
}
