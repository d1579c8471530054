import type { z } from 'zod';
import type { oas31 } from 'zod-openapi';

/** A JSON Schema (draft 2020-12), as OpenAPI 3.1 has it. */
export type JsonSchema = oas31.SchemaObject & { dependentRequired?: Record<string, string[]> };

/** An OpenAPI operation as its route declares it; what the gateway does in front of every route is added to it. */
export interface Operation {
  operationId: string;
  tag: string;
  summary: string;
  description?: string;
  deprecated?: boolean;
  /** The schema that the handler parses the parameters of the path by. */
  pathParameters?: z.ZodObject<Record<string, z.ZodType>>;
  parameters?: (oas31.ParameterObject | oas31.ReferenceObject)[];
  requestBody?: oas31.RequestBodyObject;
  responses: Record<number, oas31.ResponseObject | oas31.ReferenceObject>;
  /** The credentials that the handler of a public endpoint asks for. */
  security?: oas31.SecurityRequirementObject[];
  /** Examples of headers that no other operation answers with, by name. */
  headerExamples?: Readonly<Record<string, string>>;
}

/** What the document takes from a route. */
export interface DescribedRoute {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** As `gateway.yaml` has it: `{name}` is one segment, a last `*` one more segment, `**` any rest. */
  readonly path: string;
  /** Absent of what is described elsewhere: GraphQL, and the page that shows the document. */
  readonly operation?: Operation;
}

/** Refers to a schema of the document by name. */
export function refTo(name: string): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** Refers to a shared parameter by name. */
export function parameterOf(name: string): oas31.ReferenceObject {
  return { $ref: `#/components/parameters/${name}` };
}

/** Refers to a shared response by name. */
export function responseOf(name: string): oas31.ReferenceObject {
  return { $ref: `#/components/responses/${name}` };
}

/** Describes a response whose body is JSON of a named schema. */
export function json(
  description: string,
  schema: string,
  example: unknown,
  headers: NonNullable<oas31.ResponseObject['headers']>,
): oas31.ResponseObject {
  return { description, headers, content: { 'application/json': { schema: refTo(schema), example } } };
}
