import { isDeepStrictEqual } from 'node:util';
import type { Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Caller } from '../../../access/identity/callers.ts';
import type { Permission } from '../../../access/identity/permissions.rules.ts';
import { ERASED_BODY, ERASED_MESSAGE, IDEMPOTENCY_KEY } from '../../../idempotency/idempotent-responses.ts';
import { sameName, TEXT_PATTERN, textInput, wholeNumberInput } from '../../../lib/input.ts';
import { isObject } from '../../../lib/json.ts';
import { DEFAULT_PAGE_SIZE, firstWithin, MAX_PAGE_SIZE } from '../../../lib/keyset.ts';
import type { PagedList } from '../../../platform/database/keyset-list.ts';
import { type Issue, issuesOf, Refusal, type RefusalCode } from '../../../platform/errors.ts';
import type { FeatureServices } from '../../shared/services.ts';

/** Why a tool refused a call, in words that say what to change. */
export interface ToolFailure {
  /** The code for programs, such as `not_found`, `invalid_arguments` or `duplicate_email`. */
  code: string;
  /** The message for the agent that called. */
  message: string;
  /** The invalid arguments, by path, such as `rule.auto_transfer_rule.amount`. */
  issues?: readonly Issue[];
}

/** Thrown by a tool that refuses a call; nothing was changed. */
export class ToolError extends Error {
  override name = 'ToolError';
  readonly fault: ToolFailure;

  constructor(fault: ToolFailure) {
    super(fault.message);
    this.fault = fault;
  }
}

/** Returns the error for invalid arguments, which lists them. */
export function invalidArguments(issues: readonly Issue[]): ToolError {
  return new ToolError({ code: 'invalid_arguments', message: 'change these arguments and call again', issues });
}

/** The failures that refusals stand for; all others are unexpected. */
const FAILURES: Partial<Record<RefusalCode, (refusal: Refusal, missing: string) => ToolFailure>> = {
  not_found: ({ code }, missing) => ({ code, message: missing }),
  forbidden: ({ code, message }) => ({ code, message }),
  precondition_failed: ({ code, message }) => ({ code, message }),
  page_too_large: ({ code, message }) => ({ code, message }),
  invalid_input: ({ details }) => invalidArguments(details.issues ?? []).fault,
  idempotency_conflict: ({ code }) => ({
    code,
    message:
      'this idempotency_key was used with other arguments, or a call with it is still running: use another key for another change, or repeat the same call in a few seconds',
  }),
  gateway_timeout: ({ code }) => ({ code, message: 'it took too long: request less, or call again later' }),
  service_unavailable: ({ code, details }) => ({
    code,
    message: `too many requests are running: call again in ${details.retryAfterSeconds ?? 1} s`,
  }),
};

/**
 * Returns the failure that an error stands for; undefined for an unexpected error. For `not_found` the message is
 * `missing`, the tool's own text, which never reveals whether another tenant has the id.
 */
export function failureOf(error: unknown, missing: string): ToolFailure | undefined {
  if (error instanceof ToolError) return error.fault;
  return error instanceof Refusal ? FAILURES[error.code]?.(error, missing) : undefined;
}

/**
 * Checks that a caller has a scope.
 * @throws ToolError `forbidden` if it has not.
 */
export function requireScope({ permissions }: ToolCaller, scope: Permission): void {
  if (permissions.has(scope)) return;
  const message = `the credentials lack the scope ${scope}: an administrator of the tenant can add it to the client or the supervisor's role`;
  throw new ToolError({ code: 'forbidden', message });
}

/** The identity of an agent: a client by its secret, or the principal of an access token. */
export interface AgentIdentity extends Omit<Caller, 'correlationId' | 'traceparent'> {
  /** The name of the client; undefined if the token belongs to no client. */
  clientName: string | undefined;
}

/** The caller of a tool. */
export type ToolCaller = AgentIdentity & Caller;

/** The input of a tool besides its arguments. */
export interface ToolCall {
  caller: ToolCaller;
  services: FeatureServices;
  /** The most that a call may cost, as an operation of GraphQL. */
  maxCost: number;
}

interface ToolSpec<Input extends z.ZodType, Output extends z.ZodType> {
  /** The name of the tool in snake_case, beginning with a verb. */
  name: string;
  title: string;
  /**
   * The description from which a model chooses a tool: its result, when to use it or another tool, units, and where ids
   * come from.
   */
  description: string;
  /** The permission that the client needs; undefined if every active client may call the tool. */
  scope?: Permission;
  /** What a tool that writes does: whether it destroys something, and whether it is safe to repeat. */
  writes?: Pick<ToolAnnotations, 'destructiveHint' | 'idempotentHint'>;
  /** The schema that parses the arguments, made of the schemas of REST where they exist. */
  input: Input;
  /** The descriptions of the arguments, by path. */
  describes?: Descriptions;
  output: Output;
  /** The paths of members that are accepted without effect; any other unknown member is refused. */
  ignores?: readonly string[];
  /** The message for an id that the tenant does not have. */
  missing?: string;
  /**
   * Runs the tool.
   * @throws ToolError or Refusal when the tool refuses the call.
   */
  run(input: z.output<Input>, call: ToolCall): Promise<z.input<Output>>;
}

/** A tool with any input and output. */
export interface Tool {
  name: string;
  scope: Permission | undefined;
  missing: string;
  /** The entry of the tool in the result of `tools/list`. */
  listed: ListedTool;
  /**
   * Parses the arguments and runs the tool.
   * @throws ToolError for invalid arguments, and the errors of the tool itself.
   */
  run(args: Readonly<Record<string, unknown>>, call: ToolCall): Promise<object>;
}

/** Defines a tool: its published schemas are made from its zod schemas, which also parse its arguments. */
export function defineTool<Input extends z.ZodType, Output extends z.ZodType<object, object>>(
  spec: ToolSpec<Input, Output>,
): Tool {
  const {
    name,
    title,
    description,
    scope,
    input,
    describes,
    output,
    writes,
    ignores = [],
    missing = 'no such id',
  } = spec;
  const inputSchema = objectSchema(input, 'input', describes);
  return {
    name,
    scope,
    missing,
    listed: {
      name,
      title,
      description: `${description} ${scope === undefined ? 'Needs no scope.' : `Needs the scope ${scope}.`}`,
      inputSchema,
      // Tools that write return what the tools that read describe: a model pays for each schema with every task.
      ...(writes === undefined ? { outputSchema: objectSchema(output, 'output') } : {}),
      // The world is closed: tools reach only the data of the tenant.
      annotations: { readOnlyHint: writes === undefined, ...writes, openWorldHint: false },
    },
    run(args, call) {
      const result = input.safeParse(args);
      const issues = result.success ? [] : issuesOf(result.error, args);
      // Unknown members are refused, since ignoring one could give a result that was not requested.
      for (const { path, suggestion } of unknownMembers(inputSchema, args)) {
        if (ignores.includes(path)) continue;
        const message = `is no argument of ${name}${suggestion === undefined ? '' : `: ${suggestion} is the member's name`}`;
        issues.push({ path: printableName(path), message });
      }
      if (!result.success || issues.length > 0) return Promise.reject(invalidArguments(issues.slice(0, MAX_ISSUES)));
      return spec.run(result.data, call);
    },
  };
}

/**
 * Returns the members of a value that its published schema does not have, in objects and lists at any depth, each with
 * the known name that was probably meant.
 */
function unknownMembers(schema: unknown, value: unknown, at = ''): { path: string; suggestion: string | undefined }[] {
  if (!isObject(schema)) return [];
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => unknownMembers(schema.items, item, `${at}[${index}]`));
  }
  const { properties } = schema;
  if (!isObject(properties) || !isObject(value)) return [];
  return Object.entries(value).flatMap(([member, inner]) => {
    const path = at === '' ? member : `${at}.${member}`;
    if (Object.hasOwn(properties, member)) return unknownMembers(properties[member], inner, path);
    return [{ path, suggestion: sameName(member, Object.keys(properties)) }];
  });
}

const MAX_ISSUES = 50;
const MAX_SHOWN = 64;

/** Returns a name from a request for use in a message, cut to 64 characters and well-formed. */
export function printableName(name: string): string {
  return name.length > MAX_SHOWN ? `${name.slice(0, MAX_SHOWN).toWellFormed()}…` : name.toWellFormed();
}

/** How a call of a tool may end; over HTTP each has the status 200. */
export const TOOL_OUTCOMES = ['ok', 'error', 'failed'] as const;

/**
 * The maximum length of a page, in characters of its JSON. A result contains the page twice, and models cannot read
 * more.
 */
const MAX_PAGE_LENGTH = 1024 * 1024;

/** The arguments that every list tool has. */
export const pageArguments = {
  limit: wholeNumberInput(1, MAX_PAGE_SIZE)
    .optional()
    .meta({ description: `Rows per page; ${DEFAULT_PAGE_SIZE} by default.` }),
  cursor: textInput().optional().meta({ description: 'next_cursor of the previous page; omit it for the first page.' }),
  include_total: z
    .boolean('must be a boolean')
    .optional()
    .meta({ description: 'Whether to count total; omit it unless you need the number.' }),
};

/** The page that a caller asks for; the first one by default. */
export interface PageArguments {
  limit?: number | undefined;
  cursor?: string | undefined;
  include_total?: boolean | undefined;
}

/** Returns the output schema of a list tool: a page of rows with the given schema. */
export function pageOutput<Row extends z.ZodType>(row: Row) {
  return z.strictObject({
    data: z.array(row),
    next_cursor: z.string().nullable().meta({ description: 'The cursor of the next page; null on the last one.' }),
    total: z.int().optional().meta({ description: 'The number of rows on all pages; only with include_total.' }),
  });
}

/**
 * Reads a page of a list, from its beginning or after a cursor.
 * @throws ToolError for a cursor that is not of this list and tenant.
 */
export async function listPage<Filter, Row, View>(
  { limit: size = DEFAULT_PAGE_SIZE, cursor, include_total: isCounted = false }: PageArguments,
  { services, caller: { nodeId } }: ToolCall,
  {
    tool,
    list: listOf,
    filter,
    viewOf,
  }: {
    /** The name of the tool; its cursors are valid for no other tool. */
    tool: string;
    list(services: FeatureServices): PagedList<Row, Filter>;
    filter: NoInfer<Filter>;
    viewOf(row: NoInfer<Row>): View;
  },
) {
  const { cursors } = services;
  const scope = { connection: `mcp ${tool}`, nodeId };
  const after = cursor === undefined ? undefined : cursors.decode(scope, cursor);
  if (cursor !== undefined && after === undefined) {
    throw invalidArguments([{ path: 'cursor', message: `must be a next_cursor of ${tool}` }]);
  }
  const request = { size, backward: false, after, before: undefined };
  const list = listOf(services);
  const { rows, hasMore } = await list.page(nodeId, filter, request);
  const data = firstWithin(MAX_PAGE_LENGTH, rows.map(viewOf), (view) => JSON.stringify(view).length);
  const last = rows[data.length - 1];
  const isLast = last === undefined || !(hasMore || data.length < rows.length);
  return {
    data,
    next_cursor: isLast ? null : cursors.encode(scope, list.keyOf(last)),
    ...(isCounted ? { total: await list.count(nodeId, filter) } : {}),
  };
}

/** The JSON Schema of an object, as tools publish it. */
type ObjectSchema = ListedTool['inputSchema'];

/** A JSON Schema. */
export type Schema = z.core.JSONSchema.BaseSchema;

const NUMBER_LIMITS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'] as const;

/** Descriptions of members, by their path, such as `rule.auto_transfer_rule.amount`. The path skips list indexes. */
export type Descriptions = Readonly<Record<string, string>>;

/** What tools publish of inputs that code rather than zod parses, by the schema of the input. */
export const publishedSchemas = new Map<z.core.$ZodType, () => Schema>();

/**
 * Returns the JSON Schema of a tool's input or output, without keywords that are of no use to a model, which reads them
 * with every call.
 * @throws Error when `descriptions` names a member that does not exist.
 */
export function objectSchema(schema: z.ZodType, io: 'input' | 'output', descriptions: Descriptions = {}): ObjectSchema {
  const { $schema: _draft, ...jsonSchema } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override });
  for (const [path, description] of Object.entries(descriptions)) memberAt(jsonSchema, path).description = description;
  if (jsonSchema.type !== 'object') throw new Error('the input and output of a tool must be objects');
  return { ...(jsonSchema as ObjectSchema), type: 'object', additionalProperties: false };
}

function override({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: Schema }): void {
  const schema: z.core.$ZodType = zodSchema;
  Object.assign(jsonSchema, publishedSchemas.get(schema)?.());
  if (jsonSchema.format === 'uuid' || jsonSchema.pattern === TEXT_PATTERN) delete jsonSchema.pattern;
  // Amounts, which may be numbers as well: a model that writes text loses no digit, and not every host knows lists.
  if (Array.isArray(jsonSchema.type)) jsonSchema.type = 'string';
  // Writes `true` instead of `{}`, which means the same and is more widely understood.
  if (isDeepStrictEqual(jsonSchema.additionalProperties, {})) jsonSchema.additionalProperties = true;
  if (jsonSchema.type === 'string') for (const limit of NUMBER_LIMITS) delete jsonSchema[limit];
}

function memberAt(root: Schema, path: string): Schema {
  return path.split('.').reduce((schema, name) => {
    const list = schema.items;
    const owner = typeof list === 'object' && !Array.isArray(list) ? list : schema;
    const member = owner.properties?.[name];
    if (typeof member !== 'object') throw new Error(`${path} is described but does not exist`);
    return member;
  }, root);
}

/** The argument that makes it safe to repeat a call of a tool. */
export const idempotencyKey = z
  .string('must be a string')
  .regex(IDEMPOTENCY_KEY, 'must be 1 to 255 printable ASCII characters')
  .optional()
  .meta({
    description:
      'Your own text, unique for each change. Repeating a call with the same key and arguments within a day changes nothing and returns the first result. Pass one if you may have to repeat the call.',
  });

/**
 * Does the work once per key, and returns the stored result for a repetition. A refusal leaves the key free.
 * @throws Refusal 409 for a key that was used with other arguments.
 */
export async function idempotentCall<Result extends object>(
  { caller, services }: ToolCall,
  {
    name,
    key,
    input,
    work,
    wrapTransaction = (run) => run(),
  }: {
    /** The name of the tool. */
    name: string;
    key: string | undefined;
    /** The parsed arguments that the key stands for. */
    input: unknown;
    work(): Promise<Result>;
    /** Wraps the work, including its transaction, for instance in a mutex. */
    wrapTransaction?<Outcome>(work: () => Promise<Outcome>): Promise<Outcome>;
  },
): Promise<Result> {
  if (key === undefined) return wrapTransaction(work);
  const { nodeId, subject, clientId } = caller;
  const bytes = Buffer.from(JSON.stringify(input));
  const request = { nodeId, subject, clientId, method: 'MCP', path: name, key, bytes };
  const answer = async () => ({ status: 200, headers: {}, body: JSON.stringify(await work()) });
  const { body } = await services.idempotentResponses.respond(request, answer, wrapTransaction);
  if (body === ERASED_BODY) throw new ToolError({ code: 'erased', message: ERASED_MESSAGE });
  return JSON.parse(body ?? '{}');
}
