import { z } from 'zod';
import { isoFromPg } from './instants.ts';

/**
 * The fields of a noun, declared once: type, nullability, description and example of each. Responses, the OpenAPI
 * document, outputs of MCP tools and object types of GraphQL are made from the declaration.
 */

interface About {
  description?: string;
  example?: unknown;
}

/** The examples of fields; MCP does not show them. */
const examples = new WeakMap<z.ZodType, unknown>();

function about<Field extends z.ZodType>(field: Field, { description, example = null }: About = {}): Field {
  const described = description === undefined ? field : field.meta({ ...field.meta(), description });
  examples.set(described, example);
  return described;
}

export const uuid = (options?: About) => about(z.string().meta({ format: 'uuid' }), options);
/** A point in time: PostgreSQL's text in a row, ISO 8601 in a response. */
export const instant = (options?: About) => about(z.string().meta({ format: 'date-time' }), options);
export const text = (options?: About) => about(z.string(), options);
export const int = (options?: About) => about(z.int32(), options);

type Fields = z.ZodObject<Record<string, z.ZodType>>;

/** The kind, nullability and texts of a field. */
export function readField(field: z.ZodType) {
  const inner = field instanceof z.ZodNullable ? (field.unwrap() as z.ZodType) : field;
  const { format, description = '' } = inner.meta() ?? {};
  const kind = format === 'uuid' || format === 'date-time' ? format : inner instanceof z.ZodNumber ? 'int' : 'text';
  return { kind, description, isNullable: inner !== field, example: examples.get(inner) } as const;
}

/** Returns the names of the fields, which are those of the columns. */
export function columnsOf<Row extends Fields>({ shape }: Row): (keyof z.output<Row> & string)[] {
  return Object.keys(shape);
}

/** Returns what makes the view of a row: its fields in their order, with times in ISO 8601 to the millisecond. */
export function viewOf<Row extends Fields>({ shape }: Row): (row: z.output<Row>) => z.output<Row> {
  const fields = Object.entries(shape).map(([name, field]) => [name, readField(field).kind === 'date-time'] as const);
  return (row) => {
    const view: Record<string, unknown> = {};
    for (const [name, isInstant] of fields) {
      const value: unknown = row[name];
      view[name] = isInstant && typeof value === 'string' ? isoFromPg(value) : value;
    }
    return view as z.output<Row>;
  };
}

/** Returns the example of an object with these fields. */
export function exampleOf({ shape }: Fields): object {
  return Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, readField(field).example]));
}
