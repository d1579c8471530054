import { KYC_EVENT } from '../../user-migrations/kyc-event.rules.ts';
import type { JsonSchema } from '../json-schema.ts';

const NOTIFICATION_EVENT = 'transaction.notification';
const text: JsonSchema = { type: 'string' };
const offset: JsonSchema = { type: 'string', pattern: '^[0-9]+$' };

const replayed: JsonSchema = {
  type: 'string',
  pattern: '^[^/]+/[0-9]+/[0-9]+$',
  description: 'Topic, partition and offset of what this repeats, where it does.',
};

/** What headers messages have, by name. Header values are UTF-8 text; others may be added at any time. */
export const headerSchemas: Record<string, JsonSchema> = {
  NotificationHeaders: events(NOTIFICATION_EVENT),
  KycTokenRequestedHeaders: events(KYC_EVENT),
  ForeignHeaders: {
    type: 'object',
    description: 'None is needed.',
    properties: { 'replayed-from': replayed },
    additionalProperties: text,
  },
  DeadHeaders: {
    type: 'object',
    description: 'Those of the message as it came, and what happened to it.',
    properties: {
      error: { type: 'string', maxLength: 1024, description: 'Why no repeat can apply it, in one line.' },
      'original-topic': { type: 'string', description: 'Without the prefix of the deployment.' },
      'original-partition': offset,
      'original-offset': offset,
      'replayed-from': replayed,
    },
    required: ['error', 'original-topic', 'original-partition', 'original-offset'],
    additionalProperties: text,
  },
};

function events(type: string): JsonSchema {
  return {
    type: 'object',
    properties: {
      'event-id': {
        type: 'string',
        format: 'uuid',
        description: 'Of version 7; the same on every topic of the event.',
      },
      'event-type': { type: 'string', const: type },
      'schema-version': { type: 'string', const: '1', description: 'Consumers ignore what later versions add.' },
      'correlation-id': { type: 'string', maxLength: 1024, description: 'The X-Correlation-ID of the request.' },
      'received-at': { type: 'string', format: 'date-time' },
      traceparent: { type: 'string', description: 'Where a trace goes on (W3C Trace Context), if there is one.' },
      'replayed-from': replayed,
    },
    required: ['event-id', 'event-type', 'schema-version', 'correlation-id', 'received-at'],
    additionalProperties: text,
  };
}
