import { z } from 'zod';
import { createSchema, type oas31, type ZodOpenApiOverride } from 'zod-openapi';
import { type HeaderNames, RATE_HEADERS } from '../../access/limits/limits.rules.ts';
import type { ErrorMessage } from '../../gateway/exchange/refusals.ts';
import { RATE_WINDOWS } from '../../platform/cache/counts.rules.ts';

const count = { type: 'integer', minimum: 0 } as const;
const seconds = { type: 'integer', minimum: 1 } as const;

/** The response headers by name. */
export const headers: Record<string, oas31.HeaderObject> = {
  'X-Correlation-ID': {
    description: 'The correlation id of the request: the one that was sent, otherwise a UUID version 7.',
    required: true,
    schema: { type: 'string', maxLength: 1024 },
    example: '0193501f-2c1f-7c0a-9c4e-5b1f3a0d7e11',
  },
  'Retry-After': { description: 'Seconds to wait before the next attempt.', required: true, schema: seconds },
  ETag: {
    description: 'An entity tag: the version of a rule, or the digest of a document.',
    required: true,
    schema: { type: 'string' },
    example: '"1"',
  },
  Location: {
    description: 'The path of the rule.',
    required: true,
    schema: { type: 'string', format: 'uri-reference' },
  },
  Deprecation: {
    description: 'When the path became deprecated (RFC 9745).',
    schema: { type: 'string', pattern: '^@[0-9]+$' },
    example: '@1793491200',
  },
  Sunset: {
    description: 'When the path stops working (RFC 8594).',
    schema: { type: 'string' },
    example: 'Mon, 01 Nov 2027 00:00:00 GMT',
  },
  Link: {
    description: 'The path that replaces this one.',
    schema: { type: 'string' },
  },
  'Cache-Control': { description: 'Whether the response may be cached.', schema: { type: 'string' } },
  Allow: { description: 'The methods that the path supports.', schema: { type: 'string' } },
  'WWW-Authenticate': {
    description:
      'How to authenticate (RFC 9110 section 11.6.1), and why the token was rejected (RFC 6750 section 3.1). There is no `error` if the request had no token. `invalid_token` says whether a token with a valid signature has expired, was revoked or belongs to another class. `insufficient_scope` names the missing permissions.',
    schema: { type: 'string' },
    example: 'Bearer error="invalid_token", error_description="the token has expired"',
  },
  ...Object.fromEntries(RATE_HEADERS.flatMap(rateHeaders)),
  'X-MonthlyLimit-Limit': { description: "The client's quota of requests per calendar month (UTC).", schema: count },
  'X-MonthlyLimit-Remaining': { description: 'Requests that remain in this month.', schema: count },
  'X-MonthlyLimit-Reset': { description: 'Seconds until the next month.', schema: seconds },
};

function rateHeaders([limit, remaining, reset]: HeaderNames, index: number): [string, oas31.HeaderObject][] {
  const window = index === 0 ? 'the rate with the fewest requests left' : `the ${RATE_WINDOWS[index - 1]?.count}`;
  return [
    [limit, { description: `The maximum number of requests of the client: ${window}.`, schema: count }],
    [remaining, { description: `Requests that remain: ${window}.`, schema: count }],
    [reset, { description: `Seconds until the window restarts: ${window}.`, schema: seconds }],
  ];
}

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

export type Descriptions = Readonly<Record<string, Readonly<Record<string, string>>>>;

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

/** The member of a refusal that lists what to change. */
export const ISSUES: JsonSchema = { type: 'array', items: refTo('Issue') };

/** The refusals that several operations share, by name. */
export const responses: Record<string, oas31.ResponseObject> = {
  BadRequest: refusal(
    'The request is malformed or invalid; `errors` lists the members to change.',
    ['invalid_request'],
    limitedHeadersOf(),
    { errors: ISSUES },
    { errors: [{ path: 'name', message: 'is required: a string' }] },
  ),
  Unauthorized: refusal(
    'The token is missing, malformed, expired, revoked, or belongs to another class.',
    ['unauthorized'],
    headersOf('WWW-Authenticate'),
  ),
  Forbidden: refusal(
    'The token lacks a permission, or the client may not call with this certificate or from this address.',
    ['forbidden', 'ip_not_allowed', 'mtls_required'],
    limitedHeadersOf('WWW-Authenticate'),
  ),
  NotFound: refusal('The tenant has no object with this id, or `X-Target-Server` names another service.', [
    'not_found',
  ]),
  NotOfService: refusal('`X-Target-Server` names another service.', ['not_found'], headersOf()),
  Conflict: refusal('The `Idempotency-Key` belongs to another request, or to one in progress.', [
    'idempotency_conflict',
  ]),
  PreconditionFailed: refusal('The version of the rule is not the one in `If-Match`.', ['precondition_failed']),
  PayloadTooLarge: refusal('The body is too long. The connection is closed.', ['payload_too_large']),
  TooManyRequests: refusal(
    'The client has exceeded a rate limit or its monthly quota.',
    ['rate_limit_exceeded', 'monthly_limit_exceeded'],
    limitedHeadersOf('Retry-After'),
  ),
  InternalError: refusal('An unexpected error. The response contains only its correlation id.', ['internal_error']),
  ServiceUnavailable: refusal(
    'A store or service that the request needs is down.',
    ['service_unavailable'],
    limitedHeadersOf('Retry-After'),
  ),
};

/**
 * Returns the OpenAPI response for a refusal whose body is the error envelope (docs/contract.md, 2.3-01) with one of
 * these messages, and `more` members; the example has the first message.
 */
function refusal(
  description: string,
  reasons: readonly [ErrorMessage, ...ErrorMessage[]],
  headers = limitedHeadersOf(),
  more: Record<string, JsonSchema> = {},
  example: object = {},
): oas31.ResponseObject {
  const schema = envelope(reasons, more);
  const body = { code: -1, domain: 0, message: reasons[0], ...example };
  return { description, headers, content: { 'application/json': { schema, example: body } } };
}

/**
 * Returns the schema of an error envelope with one of these messages; members other than the three documented ones are
 * optional.
 */
export function envelope(reasons: readonly string[], more: Record<string, JsonSchema> = {}): JsonSchema {
  return {
    type: 'object',
    // Not `const`: generators stop at a negative one.
    properties: {
      code: { type: 'integer', enum: [-1] },
      domain: { const: 0 },
      message: { enum: [...reasons] },
      ...more,
    },
    required: ['code', 'domain', 'message'],
    additionalProperties: false,
  };
}
