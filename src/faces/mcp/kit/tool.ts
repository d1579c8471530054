import type { Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import { Counter } from 'prom-client';
import type { z } from 'zod';
import type { Permission } from '../../../access/identity/permissions.rules.ts';
import type { Domain } from '../../../domain/domain.ts';
import type { PageCursors } from '../../../lib/keyset.ts';
import {
  AppError,
  type Issue,
  issuesOf,
  notFoundRefusal,
  type Refusal,
  RefusalError,
} from '../../../platform/errors.ts';
import { type Descriptions, objectSchema } from './json-schema.ts';

/** Why a tool refused, in words that say what to change. */
export interface ToolFailure {
  /** For programs: `not_found`, `invalid_arguments`, `duplicate_email` … */
  code: string;
  /** For whoever called. */
  message: string;
  /** The arguments at fault, by path: `rule.auto_transfer_rule.amount`. */
  issues?: readonly Issue[];
}

/** Thrown by a tool that refuses; nothing was changed. */
export class ToolError extends Error {
  override name = 'ToolError';
  readonly fault: ToolFailure;

  constructor(fault: ToolFailure) {
    super(fault.message);
    this.fault = fault;
  }
}

/** Returns the error of invalid arguments, which lists them. */
export function invalidArguments(issues: readonly Issue[]): ToolError {
  return new ToolError({ code: 'invalid_arguments', message: 'change these arguments and call again', issues });
}

/**
 * The fault that an error stands for; undefined where it was not expected. What is not found is told in the tool's own
 * words: whose id it was and where ids are, and never whether another node has it.
 */
export function failureOf(error: unknown, missing: string): ToolFailure | undefined {
  if (error instanceof ToolError) return error.fault;
  if (error instanceof RefusalError) {
    const { refusal } = error;
    return refusal.kind === 'not_found' ? { code: 'not_found', message: missing } : failureOfRefusal(refusal);
  }
  if (!(error instanceof AppError)) return undefined;
  if (error.message === 'idempotency_conflict') {
    const message =
      'the idempotency_key came with other arguments before, or a call under it is still under way: take another key for another change, or wait a few seconds and repeat the same call';
    return { code: error.message, message };
  }
  if (error.message === 'gateway_timeout') {
    return { code: error.message, message: 'it took too long: ask for less, or call again later' };
  }
  if (error.status !== 503) return undefined;
  const seconds = error.headers['Retry-After'] ?? '1';
  return { code: error.message, message: `too much is under way: call again in ${seconds} s` };
}

/** Returns what was found. @throws RefusalError `not_found` where nothing was. */
export function found<Found>(given: Found | undefined): Found {
  if (given === undefined) throw notFoundRefusal();
  return given;
}

/** Returns the failure that stands for a refusal in every tool. */
export function failureOfRefusal(refusal: Exclude<Refusal, { kind: 'not_found' }>): ToolFailure {
  switch (refusal.kind) {
    case 'forbidden':
      return { code: 'forbidden', message: refusal.message };
    case 'duplicate':
      return { code: refusal.reason, message: refusal.message };
    case 'precondition':
      return { code: 'precondition_failed', message: refusal.message };
    case 'invalid':
      return invalidArguments([{ path: refusal.path, message: refusal.message }]).fault;
    default:
      return refusal satisfies never;
  }
}

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

/** The services that tools call. */
export interface McpServices extends Domain {
  /** Signs the cursors of pages. */
  cursors: PageCursors;
}

/** What a tool is called with beside its arguments. */
export interface ToolCall {
  caller: ToolCaller;
  services: McpServices;
}

/** What a tool does to the node: nothing, or a change, which may be one for good, and one that can be repeated. */
type ToolEffect = 'reads' | { isDestructive: boolean; isIdempotent: boolean };

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

/** Defines a tool: its published schemas are made from its zod schemas, which also parse its arguments. */
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
      for (const member of unknown) issues.push({ path: printableName(member), message: `is no argument of ${name}` });
      if (!parsed.success || issues.length > 0) return Promise.reject(invalidArguments(issues.slice(0, MAX_ISSUES)));
      return spec.run(parsed.data, call);
    },
  };
}

const MAX_ISSUES = 50;
const MAX_SHOWN = 64;

/** Returns a name that a caller has given, cut to 64 characters and well-formed, for a message. */
export function printableName(name: string): string {
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

/** How a call of a tool ended; over HTTP each is a 200. */
export type ToolOutcome = 'ok' | 'error' | 'failed';

/** Creates the metric that counts calls of tools by outcome. */
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
