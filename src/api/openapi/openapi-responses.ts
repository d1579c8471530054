import type { oas31 } from 'zod-openapi';
import type { ErrorMessage } from '../../gateway/exchange/refusals.ts';
import { headersOf, type JsonSchema, limitedHeadersOf, refTo } from './operation.ts';

type Reasons = readonly [ErrorMessage, ...ErrorMessage[]];

/** The member of a refusal that lists what to change. */
export const ISSUES: JsonSchema = { type: 'array', items: refTo('Issue') };

/** The schemas of error bodies and of an empty body, by name. */
export const errorSchemas: Record<string, JsonSchema> = {
  Issue: {
    type: 'object',
    properties: {
      path: {
        type: 'string',
        description: 'The path of the member, such as `users[3].email`; empty for the whole body.',
      },
      message: { type: 'string' },
    },
    required: ['path', 'message'],
    additionalProperties: false,
  },
  MethodNotAllowed: envelope(['method_not_allowed'] satisfies ErrorMessage[]),
  Nothing: { type: 'object', additionalProperties: false },
};

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
  reasons: Reasons,
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
