import type { Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import type { z } from 'zod';
import { issuesOf } from '../errors/issues.ts';
import type { Permission } from '../oauth/permissions.rules.ts';
import { type Descriptions, objectSchema } from './json-schema.ts';
import type { McpServices } from './services.ts';
import { invalidArguments } from './tool-error.ts';

/** The client that calls. */
export interface ToolCaller {
  nodeId: string;
  clientId: string;
  clientName: string;
  scopes: ReadonlySet<string>;
  correlationId: string;
  /** Where the trace of the request goes on, if it has one. */
  traceparent: string | undefined;
}

/** What a tool is called with beside its arguments. */
export interface ToolCall {
  caller: ToolCaller;
  services: McpServices;
}

/** What a tool does to the node: nothing, or a change, which may be one for good, and one that can be repeated. */
export type ToolEffect = 'reads' | { isDestructive: boolean; isIdempotent: boolean };

interface ToolSpec<Input extends z.ZodType, Output extends z.ZodType> {
  /** snake_case, a verb first. */
  name: string;
  title: string;
  /** For the model that chooses: what it gives, when to take it and when another one, units, what ids are of. */
  description: string;
  /** What the client must be allowed; undefined: any active client. */
  scope?: Permission;
  effect?: ToolEffect;
  /** Read by the schemas of REST where there are any. */
  input: Input;
  /** Of the arguments, by path. */
  describes?: Descriptions;
  output: Output;
  /** What is said where an id names nothing of the node. */
  missing?: string;
  /**
   * Does it.
   * @throws ToolError, RefusalError or AppError where it refuses.
   */
  run(input: z.output<Input>, call: ToolCall): Promise<z.input<Output>>;
}

/** A tool, whatever it reads and gives. */
export interface Tool {
  name: string;
  scope: Permission | undefined;
  missing: string;
  /** As `tools/list` tells it. */
  listed: ListedTool;
  /** @throws ToolError for arguments that do not hold, and what the tool itself throws. */
  run(args: Readonly<Record<string, unknown>>, call: ToolCall): Promise<object>;
}

/** Makes a tool. */
export function defineTool<Input extends z.ZodType, Output extends z.ZodType<object, object>>(
  spec: ToolSpec<Input, Output>,
): Tool {
  const { name, title, description, scope, input, describes, output, effect = 'reads', missing = 'no such id' } = spec;
  const inputSchema = objectSchema(input, 'input', describes);
  const known = Object.keys(inputSchema.properties ?? {});
  return {
    name,
    scope,
    missing,
    listed: {
      name,
      title,
      description: `${description} ${scope === undefined ? 'Needs no scope.' : `Needs the scope ${scope}.`}`,
      inputSchema,
      outputSchema: objectSchema(output, 'output'),
      annotations: annotationsOf(title, effect),
    },
    run(args, call) {
      const unknown = Object.keys(args).filter((member) => !known.includes(member));
      const parsed = input.safeParse(args);
      const issues = parsed.success ? [] : issuesOf(parsed.error);
      // An argument that was ignored in silence would make the answer one to another question.
      for (const member of unknown) issues.push({ path: shown(member), message: `is no argument of ${name}` });
      if (!parsed.success || issues.length > 0) return Promise.reject(invalidArguments(issues.slice(0, MAX_ISSUES)));
      return spec.run(parsed.data, call);
    },
  };
}

const MAX_ISSUES = 50;
const MAX_SHOWN = 64;

/** A name that a caller has given, as it is told back. */
export function shown(name: string): string {
  return name.length > MAX_SHOWN ? `${name.slice(0, MAX_SHOWN).toWellFormed()}…` : name.toWellFormed();
}

/** All of it happens in the node: no tool reaches out to an open world. */
function annotationsOf(title: string, effect: ToolEffect): ToolAnnotations {
  if (effect === 'reads') return { title, readOnlyHint: true, openWorldHint: false };
  const { isDestructive, isIdempotent } = effect;
  return {
    title,
    readOnlyHint: false,
    destructiveHint: isDestructive,
    idempotentHint: isIdempotent,
    openWorldHint: false,
  };
}
