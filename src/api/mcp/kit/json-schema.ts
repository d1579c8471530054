import type { Tool as ListedTool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { TEXT_PATTERN } from '../../../lib/input.ts';

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
  if (isEmpty(jsonSchema.additionalProperties)) jsonSchema.additionalProperties = true;
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

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}
