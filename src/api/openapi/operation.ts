import type { z } from 'zod';
import type { oas31 } from 'zod-openapi';
import { headers } from './openapi-headers.ts';

type Headers = Record<string, oas31.HeaderObject | oas31.ReferenceObject>;

/** A JSON Schema (draft 2020-12) in the dialect of OpenAPI 3.1. */
export type JsonSchema = oas31.SchemaObject & {
  dependentRequired?: Record<string, string[]>;
  dependentSchemas?: Record<string, object>;
};

/** An OpenAPI operation as its route declares it; the responses of the gateway chain are added to it. */
export interface Operation {
  operationId: string;
  tag: string;
  summary: string;
  description?: string;
  deprecated?: boolean;
  /** The schema that the handler parses the path parameters with. */
  pathParameters?: z.ZodObject<Record<string, z.ZodType>>;
  parameters?: (oas31.ParameterObject | oas31.ReferenceObject)[];
  requestBody?: oas31.RequestBodyObject;
  responses: Record<number, oas31.ResponseObject | oas31.ReferenceObject>;
  /** The credentials that the handler of a public endpoint requires. */
  security?: oas31.SecurityRequirementObject[];
}

/** The part of a route that the OpenAPI document is made from. */
export interface DescribedRoute {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /**
   * The path pattern as in `gateway.yaml`: `{name}` matches one segment, a last `*` one segment, a last `**` any
   * number.
   */
  readonly path: string;
  /** The OpenAPI operation; undefined for GraphQL and for Swagger UI, which the document does not describe. */
  readonly operation?: Operation;
}

/** Returns a reference to a schema of the document by name. */
export function refTo(name: string): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** Returns a reference to a shared parameter by name. */
export function parameterOf(name: string): oas31.ReferenceObject {
  return { $ref: `#/components/parameters/${name}` };
}

/** Returns a reference to a shared response by name. */
export function responseOf(name: string): oas31.ReferenceObject {
  return { $ref: `#/components/responses/${name}` };
}

const LIMITS = Object.keys(headers).filter(
  (name) => name.startsWith('X-Ratelimit-') || name.startsWith('X-MonthlyLimit-'),
);

/** Returns references to response headers by name, and always to `X-Correlation-ID`. */
export function headersOf(...names: readonly string[]): Headers {
  return Object.fromEntries(
    ['X-Correlation-ID', ...names].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
}

/**
 * Returns references to response headers as `headersOf` does, and to the rate and quota headers, each of which is sent
 * only to clients that have the limit.
 */
export function limitedHeadersOf(...names: readonly string[]): Headers {
  return headersOf(...names, ...LIMITS);
}

/** Returns a response whose body is JSON with a named schema, by default with the headers of `limitedHeadersOf`. */
export function json(
  description: string,
  schema: string,
  example: unknown,
  headers: Headers = limitedHeadersOf(),
): oas31.ResponseObject {
  return { description, headers, content: { 'application/json': { schema: refTo(schema), example } } };
}
