import type { z } from 'zod';
import { createSchema, type oas31, type ZodOpenApiOverride } from 'zod-openapi';

/** A JSON Schema (draft 2020-12), as OpenAPI 3.1 has it. */
export type JsonSchema = oas31.SchemaObject & { dependentRequired?: Record<string, string[]> };

/** What a schema reads (input) or gives (output). */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', override?: ZodOpenApiOverride): JsonSchema {
  const { schema: made } = createSchema(schema, { io, openapiVersion: '3.1.0', opts: override ? { override } : {} });
  // The package types what it makes for OpenAPI 3.2.
  return made as JsonSchema;
}

/** A reference to a named schema of the document. */
export function refTo(name: string): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** An object with the members of several. */
export function merged(...schemas: readonly JsonSchema[]): JsonSchema {
  const required = schemas.flatMap((schema) => schema.required ?? []);
  return {
    type: 'object',
    properties: Object.assign({}, ...schemas.map(({ properties }) => properties)),
    ...(required.length === 0 ? {} : { required }),
  };
}

/** The same object, with each of its members optional. */
export function optional({ required: _required, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

/** An object of a type that brings the object of the same name. */
export function ownObject(type: string): JsonSchema {
  return { properties: { type: { const: type } }, required: [`${type}_rule`] };
}
