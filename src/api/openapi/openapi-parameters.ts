import type { oas31 } from 'zod-openapi';
import { IDEMPOTENCY_KEY } from '../../domain/idempotency/idempotent-responses.ts';
import { MAX_CORRELATION_ID_BYTES } from '../../gateway/exchange/request-head.ts';
import { schemaOf } from './input-schemas.ts';
import type { JsonSchema, Operation } from './operation.ts';

const text: JsonSchema = { type: 'string' };

/** The descriptions and schemas of the header fields that operations share, by name. */
const HEADERS: Readonly<Record<string, readonly [description: string, schema: JsonSchema]>> = {
  'X-Correlation-ID': [
    'A correlation id, forwarded and echoed unchanged. If it is absent or empty, the gateway generates a UUID.',
    { type: 'string', maxLength: MAX_CORRELATION_ID_BYTES },
  ],
  'Idempotency-Key': [
    'Makes a retry safe. For a day, the same request by the same caller with the same key returns the first response; a different body returns 409. Successful responses and documented migration errors are stored; any other error leaves the key unused.',
    { type: 'string', pattern: IDEMPOTENCY_KEY.source },
  ],
  'If-Match': [
    'Replaces the rule only if it still has this version: the ETag of an earlier response, or `*` for any.',
    text,
  ],
  'webhook-id': ['Standard Webhooks: the id of the message. Send all three `webhook-` headers or none.', text],
  'webhook-timestamp': [
    'Standard Webhooks: when it was sent, in seconds since 1970; at most 300 seconds from now.',
    text,
  ],
  'webhook-signature': [
    'Standard Webhooks: `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; of several, separated by spaces, one must be valid. The three headers are checked if the operator has set a signing secret.',
    text,
  ],
};

/** The parameters that operations share, by name. */
export const parameters: Record<string, oas31.ParameterObject> = Object.fromEntries(
  Object.entries(HEADERS).map(([name, [description, schema]]) => [name, { name, in: 'header', description, schema }]),
);

/**
 * Returns the OpenAPI parameters of a path from the schema that its handler parses them with; none without a schema.
 */
export function pathParameters(path: Operation['pathParameters']): oas31.ParameterObject[] {
  return Object.entries(path?.shape ?? {}).map(([name, schema]) => ({
    name,
    in: 'path',
    required: true,
    schema: schemaOf(schema, 'input'),
  }));
}

/** Returns the OpenAPI parameter `X-Target-Server`, whose value is the name of one of these services. */
export function targetServer(services: readonly string[]): oas31.ParameterObject {
  return {
    name: 'X-Target-Server',
    in: 'header',
    description:
      'The service that the request is for. If it is absent or empty, the gateway selects the service. Another name returns 404.',
    schema: { type: 'string', enum: [...services, ''] },
  };
}
