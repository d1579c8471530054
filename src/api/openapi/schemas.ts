import { z } from 'zod';
import { createSchema, type ZodOpenApiOverride } from 'zod-openapi';
import type { JsonSchema } from './operation.ts';

/** What a noun adds to the schemas of the document, by name. */
export interface DocumentedSchemas {
  /** Request bodies, generated from the schemas that parse them. Unknown members are ignored, so they are allowed. */
  inputs?: Readonly<Record<string, JsonSchema>>;
  /** Response bodies, which have no other members. Their types are checked against the types of the services. */
  outputs?: Readonly<Record<string, z.ZodType>>;
  /** Error bodies. */
  errors?: Readonly<Record<string, JsonSchema>>;
  /** The descriptions of members of `inputs` and `errors`, by the name of their schema. */
  descriptions?: Descriptions;
}

type Descriptions = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const uri = () => z.string().meta({ format: 'uri' });

/** Returns the JSON Schema of the input or the output of a zod schema. */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', override?: ZodOpenApiOverride): JsonSchema {
  const { schema: jsonSchema } = createSchema(schema, {
    io,
    openapiVersion: '3.1.0',
    opts: override ? { override } : {},
  });
  // The package declares the type for OpenAPI 3.2.
  return jsonSchema as JsonSchema;
}

/** The largest uint64 as JSON writes it after rounding to a double, and exactly. */
const ROUNDED_UINT64 = String(Number(2n ** 64n - 1n));
const MAX_UINT64 = String(2n ** 64n - 1n);

/** Replaces the rounded largest uint64 in the text of a document by the exact number. */
export function withExactNumbers(text: string): string {
  return text.replaceAll(ROUNDED_UINT64, MAX_UINT64);
}

/** Returns an object schema with the members of several schemas. */
export function merged(...schemas: readonly JsonSchema[]): JsonSchema {
  const required = schemas.flatMap((schema) => schema.required ?? []);
  return {
    type: 'object',
    properties: Object.assign({}, ...schemas.map(({ properties }) => properties)),
    ...(required.length === 0 ? {} : { required }),
  };
}

/** A text that is not blank. */
export const FILLED: JsonSchema = { type: 'string', pattern: '[^\\s\\x85]' };

/** Returns a schema that requires a member with a value that does not count as absent. */
export function requiringMember(name: string, value: JsonSchema = { not: { enum: [null] } }): JsonSchema {
  return { properties: { [name]: value }, required: [name] };
}

/** Returns a schema in which every optional member, at any depth, may be null, which counts as absent. */
export function withNulls(schema: JsonSchema): JsonSchema {
  const { properties, required = [] } = schema;
  if (!properties) return schema;
  const members = Object.entries(properties).map(([name, member]) => {
    const own: JsonSchema = withNulls(member as JsonSchema);
    const isNullable = typeof own.type === 'string' && !required.includes(name);
    return [name, isNullable ? { ...own, type: [own.type, 'null'] } : own];
  });
  return { ...schema, properties: Object.fromEntries(members) };
}

/** What the document says of inputs that code rather than zod parses, by the schema of the input. */
export const documentedInputs = new Map<z.core.$ZodType, JsonSchema>();

const override: ZodOpenApiOverride = ({ zodSchema, jsonSchema }) => {
  const documented = documentedInputs.get(zodSchema);
  if (documented?.$ref) delete jsonSchema.type;
  Object.assign(jsonSchema, documented);
};

/** Returns the JSON Schema of a request body or a part of one. */
export function inputSchema(schema: z.ZodType): JsonSchema {
  return schemaOf(schema, 'input', override);
}

/**
 * Returns a schema that is met only where another is too. The other one depends on a required member, and so always
 * holds; as `anyOf` or `not` it would be a class of generated clients instead of the members.
 */
export function demanding(schema: JsonSchema, demanded: object): JsonSchema {
  return { ...schema, dependentSchemas: { [String(schema.required?.[0])]: demanded } };
}

/**
 * Returns the schemas with the descriptions of their members added.
 * @throws Error for a description of a schema or member that does not exist.
 */
export function described<Schemas extends Record<string, JsonSchema>>(
  schemas: Schemas,
  descriptions: Descriptions,
): Schemas {
  // Cloned together, so that schemas which share a member still share it.
  const copies = structuredClone(schemas);
  for (const [name, members] of Object.entries(descriptions)) {
    for (const [member, description] of Object.entries(members)) {
      const schema = copies[name]?.properties?.[member];
      if (!schema) throw new Error(`${name}.${member} is described but does not exist`);
      schema.description = description;
    }
  }
  return copies;
}
