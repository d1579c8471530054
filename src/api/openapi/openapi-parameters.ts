import type { oas31 } from 'zod-openapi';
import { IDEMPOTENCY_KEY } from '../../domain/idempotency/idempotent-responses.ts';
import { MAX_CORRELATION_ID_BYTES } from '../../gateway/exchange/request-head.ts';
import { schemaOf } from './input-schemas.ts';
import type { Operation } from './operation.ts';

/** The parameters that operations share, by name. */
export const parameters: Record<string, oas31.ParameterObject> = {
  'X-Correlation-ID': {
    name: 'X-Correlation-ID',
    in: 'header',
    description:
      'A correlation id, forwarded and echoed unchanged. If it is absent or empty, the gateway makes a UUID.',
    schema: { type: 'string', maxLength: MAX_CORRELATION_ID_BYTES },
  },
  'Idempotency-Key': {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'Makes a retry safe: for a day the same request of the same caller with the same key gets the first response again; another body gets 409. Stored are successes and the documented reasons of a migration; any other refusal leaves the key free.',
    schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
  },
  'If-Match': {
    name: 'If-Match',
    in: 'header',
    description: 'Replaces the rule only if it has this version: `*`, or the ETag of an earlier response.',
    schema: { type: 'string' },
  },
  'webhook-id': {
    name: 'webhook-id',
    in: 'header',
    description: 'Standard Webhooks: the id of the message. The three headers go together.',
    schema: { type: 'string' },
  },
  'webhook-timestamp': {
    name: 'webhook-timestamp',
    in: 'header',
    description: 'Standard Webhooks: when it was sent, in seconds since 1970; at most 300 seconds from now.',
    schema: { type: 'string' },
  },
  'webhook-signature': {
    name: 'webhook-signature',
    in: 'header',
    description:
      'Standard Webhooks: `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; of several, separated by spaces, one must hold. The three are judged where the operator has set a signing secret.',
    schema: { type: 'string' },
  },
};

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
      'The service that the request is meant for; without it, or empty, this gateway decides. Another name is a 404.',
    schema: { type: 'string', enum: [...services, ''] },
  };
}
