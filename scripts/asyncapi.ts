import { stringify } from 'yaml';
import { type JsonSchema, merged, schemaOf } from '../src/api/openapi/operation.ts';
import { isDeadLetterTopic } from '../src/events/bus/event-bus.ts';
import { DAY_MS, MAX_LETTER_BYTES, PARTITIONS, retentionDays } from '../src/events/bus/kafka-admin.ts';
import { ALL_TOPICS, isCompactedTopic, REFERENCE_KINDS, TOPICS } from '../src/events/bus/topics.ts';
import { commonInput, rowInputs } from '../src/features/reference/reference.input.ts';
import type { ReferenceKind } from '../src/features/reference/reference.rules.ts';
import { notificationInput, registrationInput } from '../src/features/transactions/notification.input.ts';
import { NOTIFICATION_EVENT } from '../src/features/transactions/transaction-messages.service.ts';
import { KYC_EVENT } from '../src/features/user-migrations/migration-outcome.rules.ts';
import { NOTIFICATION_MEMBERS } from '../src/features/webhook/webhook.openapi.ts';
import { VERSION } from '../src/platform/health.ts';
import { described, withExactNumbers } from './openapi.ts';

const text: JsonSchema = { type: 'string' };
const offset: JsonSchema = { type: 'string', pattern: '^[0-9]+$' };

const replayed: JsonSchema = {
  type: 'string',
  pattern: '^[^/]+/[0-9]+/[0-9]+$',
  description: 'For a replayed message, the topic, partition and offset of the original.',
};

/** The schemas of message headers by name. Header values are UTF-8 text; other headers may be added at any time. */
const headerSchemas: Record<string, JsonSchema> = {
  NotificationHeaders: events(NOTIFICATION_EVENT),
  KycTokenRequestedHeaders: events(KYC_EVENT),
  ForeignHeaders: {
    type: 'object',
    description: 'No headers are required.',
    properties: { 'replayed-from': replayed },
    additionalProperties: text,
  },
  DeadHeaders: {
    type: 'object',
    description: 'The headers of the original message, and the reason of the dead letter.',
    properties: {
      error: { type: 'string', maxLength: 1024, description: 'The reason why it cannot be processed, in one line.' },
      'original-topic': { type: 'string', description: 'The original topic, without the prefix of the deployment.' },
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
        description: 'A UUID version 7, the same on every topic of the event.',
      },
      'event-type': { type: 'string', const: type },
      'schema-version': {
        type: 'string',
        const: '1',
        description: 'Consumers ignore members that later versions add.',
      },
      'correlation-id': { type: 'string', maxLength: 1024, description: 'The X-Correlation-ID of the request.' },
      'received-at': { type: 'string', format: 'date-time' },
      traceparent: { type: 'string', description: 'The parent of a trace (W3C Trace Context), if there is one.' },
      'replayed-from': replayed,
    },
    required: ['event-id', 'event-type', 'schema-version', 'correlation-id', 'received-at'],
    additionalProperties: text,
  };
}

const uuid: JsonSchema = { type: 'string', format: 'uuid' };

/** Returns the name of the schema for the rows of a kind of reference data. */
function rowName(kind: ReferenceKind): string {
  return `Reference${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
}

/**
 * Returns the schemas of message values by name. Schemas of consumed messages are generated from the schemas that parse
 * them.
 */
function payloadSchemas(): Record<string, JsonSchema> {
  const { Notification } = described(
    { Notification: schemaOf(notificationInput, 'input') },
    { Notification: NOTIFICATION_MEMBERS },
  );
  return {
    Notification: withNulls(Notification),
    Registration: withNulls(schemaOf(registrationInput, 'input')),
    KycTokenRequested: {
      type: 'object',
      description: 'A user who was created without a KYC token. It contains neither name nor email.',
      properties: {
        id: { ...uuid, description: 'The id of the event, a UUID version 7. Republishing keeps it.' },
        event: { type: 'string', const: KYC_EVENT },
        user_id: uuid,
        node_id: uuid,
        wallet_address: { type: 'string', minLength: 1, maxLength: 128, description: 'In lower case.' },
        external_id: { type: ['string', 'null'] },
        occurred_at: { type: 'string', format: 'date-time' },
      },
      required: ['id', 'event', 'user_id', 'node_id', 'wallet_address', 'external_id', 'occurred_at'],
      additionalProperties: false,
    },
    ...Object.fromEntries(REFERENCE_KINDS.map((kind) => [rowName(kind), rowSchema(kind)])),
    Tombstone: {
      type: 'null',
      description: 'A message without a value deletes the row. For an account, it sets deleted_at.',
    },
    DeadBytes: { description: 'The bytes of the original message, unchanged.' },
  };
}

function rowSchema(kind: ReferenceKind): JsonSchema {
  const schema = merged(schemaOf(commonInput, 'input'), schemaOf(rowInputs[kind], 'input'));
  return withNulls({ ...schema, description: 'The higher version wins. If there is an id, it equals the key.' });
}

/**
 * Returns a schema extended by what this product also accepts: null for optional members, and any ISO 8601 form of a
 * time.
 */
function withNulls(schema: JsonSchema): JsonSchema {
  const properties = Object.entries(schema.properties ?? {}).map(([name, member]) => {
    const { format, ...rest } = member as JsonSchema;
    const known: JsonSchema = format === undefined || format === 'date-time' ? rest : { ...rest, format };
    const isNullable = schema.required?.includes(name) !== true && typeof known.type === 'string';
    return [name, isNullable && known.type !== 'null' ? { ...known, type: [known.type, 'null'] } : known];
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}

interface MessageObject {
  title: string;
  contentType?: string;
  headers: { $ref: string };
  payload: { $ref: string };
  bindings: { kafka: { key: JsonSchema } };
}

interface Topic {
  summary: string;
  messages: readonly string[];
  /** Whether this product publishes to the topic, consumes it, or both. */
  actions: readonly ('send' | 'receive')[];
}

const INTRODUCTION = [
  'The Kafka topics of the gateway. A deployment may put a prefix before every name (`TOPIC_PREFIX`).',
  'Delivery is at least once, in order within each key. Consumers ignore unknown headers and members, and later schema versions.',
].join('\n\n');

const uuidKey: JsonSchema = { type: 'string', format: 'uuid' };
const transactionKey: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 128,
  description: 'The id of the transaction.',
};

/** Builds the AsyncAPI 3.0 document of every topic from the schemas that parse its messages. */
function asyncApiDocument() {
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Portcullis',
      version: VERSION,
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'application/json',
    channels: Object.fromEntries(ALL_TOPICS.map((topic) => [topic, channelOf(topic)])),
    operations: Object.fromEntries(
      ALL_TOPICS.flatMap((topic) =>
        topicOf(topic).actions.map((action) => [
          `${action}.${topic}`,
          { action, channel: { $ref: `#/channels/${topic}` } },
        ]),
      ),
    ),
    components: {
      messages: messages(),
      schemas: { ...payloadSchemas(), ...headerSchemas },
    },
  };
}

function topicOf(topic: string): Topic {
  if (isDeadLetterTopic(topic)) {
    return {
      summary: `Dead letters of ${topic.replace(/\.dlq$/, '')}.`,
      messages: ['DeadLetter'],
      actions: ['send'],
    };
  }
  switch (topic) {
    case TOPICS.admin:
      return notifications('tokens, nodes and currencies');
    case TOPICS.user:
      return notifications('users, the secondary market and OTC');
    case TOPICS.registered:
      return {
        summary:
          'Registrations of transactions, sent by the services that own them, before or after their notifications.',
        messages: ['Registration'],
        actions: ['receive'],
      };
    case TOPICS.kycToken:
      return {
        summary: 'Users who need a KYC token: one event for each created user, unless the token was already sent.',
        messages: ['KycTokenRequested'],
        actions: ['send'],
      };
    default: {
      const kind = REFERENCE_KINDS.find((known) => topic === `reference.${known}`);
      if (!kind) throw new Error(`${topic} is not described`);
      return {
        summary: `The ${kind} of the platform, sent by the service that owns them.`,
        messages: [rowName(kind), 'Tombstone'],
        actions: ['receive'],
      };
    }
  }
}

function notifications(whose: string): Topic {
  return {
    summary: `Every notification that the webhook receives; consumed for transactions of ${whose}.`,
    messages: ['Notification'],
    actions: ['send', 'receive'],
  };
}

function channelOf(topic: string) {
  const { summary, messages: names } = topicOf(topic);
  const kept = isCompactedTopic(topic)
    ? { 'cleanup.policy': ['compact'] }
    : {
        'cleanup.policy': ['delete'],
        'retention.ms': retentionDays(topic) * DAY_MS,
        ...(isDeadLetterTopic(topic) && { 'max.message.bytes': MAX_LETTER_BYTES }),
      };
  return {
    address: topic,
    summary,
    messages: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
    bindings: { kafka: { partitions: PARTITIONS, topicConfiguration: kept, bindingVersion: '0.5.0' } },
  };
}

function messages(): Record<string, MessageObject> {
  const foreign = 'ForeignHeaders';
  return {
    Notification: message(
      'A transaction notification, its bytes unchanged',
      'NotificationHeaders',
      'Notification',
      transactionKey,
    ),
    Registration: message(
      'A transaction and the tenant (node) that it belongs to',
      foreign,
      'Registration',
      transactionKey,
    ),
    KycTokenRequested: message('A user needs a KYC token', 'KycTokenRequestedHeaders', 'KycTokenRequested', uuidKey),
    ...Object.fromEntries(
      REFERENCE_KINDS.map((kind) => [rowName(kind), message(`A row of ${kind}`, foreign, rowName(kind), uuidKey)]),
    ),
    Tombstone: message('A row was deleted', foreign, 'Tombstone', uuidKey),
    DeadLetter: {
      ...message('A message that cannot be processed', 'DeadHeaders', 'DeadBytes', { type: 'string' }),
      contentType: 'application/octet-stream',
    },
  };
}

function message(title: string, headers: string, payload: string, key: JsonSchema): MessageObject {
  return {
    title,
    headers: { $ref: `#/components/schemas/${headers}` },
    payload: { $ref: `#/components/schemas/${payload}` },
    bindings: { kafka: { key } },
  };
}

const HEAD = '# Generated from the schemas that messages are read by: npm run schema\n';

/** Returns the document as text for `schema/asyncapi.yaml`; the text is always the same. */
export function printedAsyncApi(): string {
  const text = stringify(asyncApiDocument(), { aliasDuplicateObjects: false, lineWidth: 0 });
  return `${HEAD}${withExactNumbers(text)}`;
}
