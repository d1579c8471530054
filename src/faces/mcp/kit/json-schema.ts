import { z } from 'zod';
import { migrateUsersInput } from '../../../domain/user-migrations/migration.input.ts';
import { ruleLogicTextInput } from '../../../domain/wallet-rules/wallet-rule.input.ts';
import { TEXT_PATTERN } from '../../../lib/input.ts';

/** A JSON Schema of an object, as tools publish it. */
interface ObjectSchema {
  type: 'object';
  properties?: Record<string, object>;
  required?: string[];
  [member: string]: unknown;
}

type Schema = z.core.JSONSchema.BaseSchema;

const NUMBER_LIMITS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'] as const;

/** Descriptions of members, by their path: `rule.auto_transfer_rule.amount`; of a list's entries as of the list. */
export type Descriptions = Readonly<Record<string, string>>;

/** Rows that are counted before they are judged. */
const bulkRows = migrateUsersInput.out.shape.users;

/** A tree of conditions, without references, which not every model's host follows. */
const LOGIC: Schema = {
  type: 'object',
  properties: {
    field: { type: 'string', description: 'Of a condition: what is compared, such as "balance.available".' },
    op: { type: 'string', enum: ['lt', 'lte', 'gt', 'gte', 'eq', 'neq'], description: 'Of a condition.' },
    value: { type: 'string', description: 'Of a condition: an exact decimal, "1000.50".' },
    network_currency_id: { type: 'string', format: 'uuid', description: 'Of a condition: the currency of value.' },
    and: { type: 'array', items: { type: 'object' }, minItems: 1, description: 'Of a group: all of these hold.' },
    or: { type: 'array', items: { type: 'object' }, minItems: 1, description: 'Of a group: one of these holds.' },
    not: { type: 'object', description: 'Of a group: this does not hold.' },
  },
};

/**
 * What a tool reads or gives, as a JSON Schema. It has no words that say nothing to a model, each of which it would read
 * with every call.
 * @throws Error for a description of what is not there.
 */
export function objectSchema(schema: z.ZodType, io: 'input' | 'output', descriptions: Descriptions = {}): ObjectSchema {
  const { $schema: _draft, ...made } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override });
  for (const [path, description] of Object.entries(descriptions)) memberAt(made, path).description = description;
  if (made.type !== 'object') throw new Error('a tool reads and gives objects');
  return { ...(withSingleTypes(made) as ObjectSchema), type: 'object', additionalProperties: false };
}

function override({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: Schema }): void {
  const schema: z.core.$ZodType = zodSchema;
  if (schema === ruleLogicTextInput) Object.assign(jsonSchema, LOGIC);
  if (schema === bulkRows) jsonSchema.items = objectSchema(bulkRows.out.element, 'input') as Schema;
  if (jsonSchema.format === 'uuid' || jsonSchema.pattern === TEXT_PATTERN) delete jsonSchema.pattern;
  // The same, in the form that every reader knows.
  if (isEmpty(jsonSchema.additionalProperties)) jsonSchema.additionalProperties = true;
  if (jsonSchema.type === 'string') for (const limit of NUMBER_LIMITS) delete jsonSchema[limit];
}

/** One type at a place: hosts that know no others then know all of it. */
function withSingleTypes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSingleTypes);
  if (typeof value !== 'object' || value === null) return value;
  const { type, description, ...rest } = Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, withSingleTypes(member)]),
  );
  const told = description === undefined ? {} : { description };
  if (!Array.isArray(type)) return { ...(type === undefined ? {} : { type }), ...rest, ...told };
  const branches = type.map((one: unknown) => (one === 'null' ? { type: one } : { type: one, ...rest }));
  return { anyOf: branches, ...told };
}

function memberAt(root: Schema, path: string): Schema {
  return path.split('.').reduce((schema, name) => {
    const list = schema.items;
    const owner = typeof list === 'object' && !Array.isArray(list) ? list : schema;
    const member = owner.properties?.[name];
    if (typeof member !== 'object') throw new Error(`${path} is described and not there`);
    return member;
  }, root);
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}
